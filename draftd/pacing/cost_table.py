"""What a step of a verifier costs, by the tokens that it processes."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
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
    Raises ValueError, naming the entry, for what is no table: tokens ascend, micros never fall and are above 0.
    """

    tokens: Sequence[int]
    micros: Sequence[float]
    drafting_micros: float = 0.0
    columns: tuple[bytes, bytes] = field(init=False, repr=False, compare=False)
    """Of the wire: u32[n] tokens, f32[n] micros."""

    def __post_init__(self) -> None:
        # Of Python's kind, whichever they were.
        object.__setattr__(self, "tokens", tuple(_pythons(entry) for entry in self.tokens))
        object.__setattr__(self, "micros", tuple(_pythons(entry) for entry in self.micros))
        _check(self)
        columns = (np.array(self.tokens, "<u4").tobytes(), np.array(self.micros, "<f4").tobytes())
        object.__setattr__(self, "columns", columns)

    def micros_of(self, tokens: int) -> float:
        """Of a step of so many tokens; beyond the last entry in proportion."""
        entry = bisect_left(self.tokens, tokens)
        if entry < len(self.tokens):
            return self.micros[entry]
        return self.micros[-1] * tokens / self.tokens[-1]

    def message(self) -> wire.CostTable:
        tokens, micros = self.columns
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
        return cls(tuple(tokens.tolist()), tuple(micros.tolist()), message.drafting_micros)


def _pythons(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check(table: Any) -> None:
    if len(table.tokens) != len(table.micros):
        raise ValueError(
            f"a cost table of {len(table.tokens)} tokens and {len(table.micros)} micros; give one for each"
        )
    if not 1 <= len(table.tokens) <= MOST_SIZES:
        raise ValueError(f"a cost table of {len(table.tokens)} entries; give 1 to {MOST_SIZES}")
    for entry, (tokens, micros) in enumerate(zip(table.tokens, table.micros, strict=True)):
        if not isinstance(tokens, int) or not 1 <= tokens < 2**32:
            raise ValueError(f"entry {entry}: tokens is {tokens!r}; give a whole number from 1 to 2^32-1")
        if not isinstance(micros, (int, float)) or not (math.isfinite(micros) and 0 < micros < 1e12):
            raise ValueError(f"entry {entry}: micros is {micros!r}; give a number above 0 and below 1e12")
    for entry, ((narrow, cheap), (wide, dear)) in enumerate(pairwise(zip(table.tokens, table.micros, strict=True)), 1):
        if wide <= narrow:
            raise ValueError(f"entry {entry}: tokens is {wide} after {narrow}; tokens ascend")
        if dear < cheap:
            raise ValueError(f"entry {entry}: micros is {dear} after {cheap}; a longer step never costs less")
    if not (math.isfinite(table.drafting_micros) and 0 <= table.drafting_micros < 1e12):
        raise ValueError(f"drafting_micros is {table.drafting_micros!r}; give a number from 0 on, below 1e12")
