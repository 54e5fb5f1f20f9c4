"""What a step of a verifier costs, by the tokens that it processes."""

from array import array
from collections.abc import Sequence
from ctypes import c_float
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from draftd import wire

MOST_SIZES = 4096  # of a table: a step looks at each once


@dataclass(frozen=True, slots=True)
class CostTable:
    """A step of up to `tokens[i]` tokens takes `micros[i]` microseconds: a step function, as where graphs are padded.

    Tokens of a step: one of each request, those that it processes beside them, and the drafted ones. Nothing is drafted
    that would make a step longer than the last entry. `drafting_micros` come on top as soon as one node is verified.
    Times are rounded to 32 bits, as on the wire.
    Raises ValueError, naming the entry, for what is no table: tokens ascend, micros never fall and are above 0.
    """

    tokens: Sequence[int]
    micros: Sequence[float]
    drafting_micros: float = 0.0

    def __post_init__(self) -> None:
        tokens = [_pythons(entry) for entry in self.tokens]
        micros = [_rounded(entry) for entry in self.micros]
        drafting_micros = _rounded(self.drafting_micros)
        _check(tokens, micros)
        if not (isinstance(drafting_micros, float) and 0 <= drafting_micros < 1e12):
            raise ValueError(f"drafting_micros is {drafting_micros!r}; give a number from 0 on, below 1e12")
        # Arrays hold 4096 entries in 32 KB; as Python's numbers they would take ten times as much.
        object.__setattr__(self, "tokens", array("I", tokens))
        object.__setattr__(self, "micros", array("f", micros))
        object.__setattr__(self, "drafting_micros", drafting_micros)

    def columns(self) -> tuple[bytes, bytes]:
        """Of the wire: u32[n] tokens, f32[n] micros."""
        return np.asarray(self.tokens, "<u4").tobytes(), np.asarray(self.micros, "<f4").tobytes()

    def message(self) -> wire.CostTable:
        tokens, micros = self.columns()
        return wire.CostTable(tokens=tokens, micros=micros, drafting_micros=self.drafting_micros)

    @classmethod
    def of_message(cls, message: wire.CostTable) -> "CostTable":
        """Raises ValueError for what is no table."""
        for name, column in (("tokens", message.tokens), ("micros", message.micros)):
            if len(column) % 4:
                raise ValueError(f"{name}: {len(column)} bytes are no column of 4-byte entries")
            if len(column) > 4 * MOST_SIZES:  # before so many are unpacked
                raise ValueError(f"a cost table of {len(column) // 4} {name}; give 1 to {MOST_SIZES}")
        tokens, micros = np.frombuffer(message.tokens, "<u4"), np.frombuffer(message.micros, "<f4")
        return cls(tokens.tolist(), micros.tolist(), message.drafting_micros)


def _pythons(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _rounded(value: Any) -> Any:
    """A number as the wire has it; what is none stays what it is, for the check to name it."""
    number = _pythons(value)
    return c_float(number).value if isinstance(number, (int, float)) else number


def _check(tokens: Sequence[Any], micros: Sequence[Any]) -> None:
    if len(tokens) != len(micros):
        raise ValueError(f"a cost table of {len(tokens)} tokens and {len(micros)} micros; give one for each")
    if not 1 <= len(tokens) <= MOST_SIZES:
        raise ValueError(f"a cost table of {len(tokens)} entries; give 1 to {MOST_SIZES}")
    for entry, size in enumerate(tokens):
        if not isinstance(size, int) or not 1 <= size < 2**32:
            raise ValueError(f"entry {entry}: tokens is {size!r}; give a whole number from 1 to 2^32-1")
    for entry, time in enumerate(micros):
        if not isinstance(time, float) or not 0 < time < 1e12:
            raise ValueError(f"entry {entry}: micros is {time!r}; give a number above 0 and below 1e12, of 32 bits")
    _check_order(tokens, micros)


def _check_order(tokens: Sequence[int], micros: Sequence[float]) -> None:
    for entry, (narrow, wide) in enumerate(pairwise(tokens), 1):
        if wide <= narrow:
            raise ValueError(f"entry {entry}: tokens is {wide} after {narrow}; tokens ascend")
    for entry, (cheap, dear) in enumerate(pairwise(micros), 1):
        if dear < cheap:
            raise ValueError(f"entry {entry}: micros is {dear} after {cheap}; a longer step never costs less")
