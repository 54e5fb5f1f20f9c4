"""Hidden states of the target, as a verifier gives them for its requests, and as columns of a commit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import ArrayLike, NDArray

from draftd.client.columns import u32_column, whole
from draftd.wire import WIDEST_STATE, HiddenStates


class RequestStates:
    """Those of one request at `start` and the positions behind it, of prompt and output together. The state at position
    p is what token p + 1 was drawn from: there is none for the newest token."""

    __slots__ = ("start", "values")

    def __init__(self, start: int, values: ArrayLike) -> None:
        """`values`: [states, width], at most 65536 wide; they travel as bfloat16, rounded to the nearest, and infinite
        where they are larger than any of that.

        Raises ValueError for what can't be that."""
        array = np.asarray(values)
        if array.ndim != 2 or not 1 <= array.shape[1] <= WIDEST_STATE:
            raise ValueError(f"hidden states are {list(array.shape)}; give [states, 1 to {WIDEST_STATE} values]")
        if array.dtype != bfloat16 and array.dtype.kind != "f":
            raise ValueError(f"hidden states are of {array.dtype}; give floating-point numbers")
        self.start = whole("start", start)
        if not 0 <= self.start <= 2**32 - len(array):
            raise ValueError(
                f"{len(array)} hidden states start at position {start}; a text has 2^32 of them, from 0 on"
            )
        with np.errstate(over="ignore"):
            self.values: NDArray[bfloat16] = np.ascontiguousarray(array, bfloat16)

    def __repr__(self) -> str:
        return f"RequestStates(positions {self.start} to {self.end - 1}, {self.values.shape[1]} wide)"

    @property
    def end(self) -> int:
        """The position behind the newest."""
        return self.start + len(self.values)

    def newest(self, most_bytes: int) -> "RequestStates":
        """Without the oldest, so that they are no more than that."""
        kept = max(0, most_bytes) // (self.values.itemsize * self.values.shape[1])
        left_out = max(0, len(self.values) - kept)
        return RequestStates(self.start + left_out, self.values[left_out:])


States = RequestStates | None


def states_of_rows(hidden: Mapping[Any, object] | None, requests: Iterable[Any]) -> list[States] | None:
    """Those of each request; None where none has any. Raises ValueError for what are none, and for such as differ in
    width."""
    if not hidden:
        return None
    for states in hidden.values():
        if not isinstance(states, RequestStates):
            what = type(states).__name__
            raise ValueError(f"hidden states of a request are {what}; give RequestStates")  # noqa: TRY004 (as all here)
    of_rows = map(hidden.get, requests)
    rows = [states if isinstance(states, RequestStates) and len(states.values) else None for states in of_rows]
    widths = {states.values.shape[1] for states in rows if states is not None}
    if len(widths) > 1:
        raise ValueError(f"hidden states of one step are {min(widths)} and {max(widths)} wide; give all the same width")
    return rows if widths else None


def states_bytes(states: States) -> int:
    return 0 if states is None else states.values.nbytes


def fill_hidden(message: HiddenStates, rows: Sequence[States], lengths: Sequence[int]) -> dict[int, str]:
    """`lengths`: of the texts with this commit. Rows with states of tokens that are not in them are left out, as a
    drafter would refuse the whole step for them; says of each why."""
    problems = {
        row: f"hidden states are left out: they are of positions up to {states.end - 1}; of {length} tokens the newest "
        f"is at {length - 2}"
        for row, (states, length) in enumerate(zip(rows, lengths, strict=True))
        if states is not None and states.end >= length
    }
    kept = [None if row in problems else states for row, states in enumerate(rows)]
    present = [states.values for states in kept if states is not None]
    if present:
        message.start = u32_column(0 if states is None else states.start for states in kept)
        counts = [0 if states is None else len(states.values) for states in kept]
        message.end = np.cumsum(counts, dtype="<u4").tobytes()
        message.width = present[0].shape[1]
        message.values = b"".join(values.tobytes() for values in present)
    return problems
