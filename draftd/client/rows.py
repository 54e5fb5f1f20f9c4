"""The commit columns of one step: one row per request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from draftd.client.columns import token_column, u32_column
from draftd.client.mirror import Mirror
from draftd.wire import ALL_VERIFIED, BITMAP_VERIFIED, NO_TAIL, VerifyCommit

MOST_NODES = 2**16 - 1  # VerifyCommit.max_nodes is a column of u16

# Which nodes of the last delivered draft went through the target: the first so many, or one flag per node.
# None: all of them.
Verified = int | Sequence[bool] | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted next. Raises ValueError for a wish nobody can have."""

    max_nodes: int  # of each request
    budget: int | None = None  # of all requests together; None: whatever max_nodes allows
    min_survival: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.max_nodes <= MOST_NODES:
            raise ValueError(f"{self.max_nodes} nodes of one request were asked for; ask for 1 to {MOST_NODES}")
        if self.budget is not None and not 1 <= self.budget < 2**32:
            raise ValueError(f"budget is {self.budget}; give at least 1, or None for no limit over the batch")
        if not 0.0 <= self.min_survival <= 1.0:
            raise ValueError(f"min_survival is {self.min_survival}; a probability is between 0 and 1")


class RowColumns:
    """Handle and epoch columns, kept from step to step: engines step the same requests again and again."""

    def __init__(self) -> None:
        self._mirrors: list[Mirror] = []
        self._columns = (b"", b"")

    def of(self, mirrors: list[Mirror]) -> tuple[bytes, bytes]:
        if mirrors != self._mirrors:
            self._mirrors = mirrors
            self._columns = (
                u32_column(mirror.handle for mirror in mirrors),
                u32_column(mirror.epoch for mirror in mirrors),
            )
        return self._columns


def fill_commit(
    commit: VerifyCommit,
    mirrors: list[Mirror],
    starts: list[int],
    tokens: Sequence[Sequence[int]],
    verified: Sequence[Verified] | None,
    max_nodes: int,
) -> None:
    """All columns but request, epoch and tokens. `starts` are the committed lengths before `tokens`."""
    rows = len(mirrors)
    commit.start = u32_column(starts)
    lengths = list(map(len, tokens))
    commit.token_end = u32_column(accumulate(lengths))
    has_tails = [mirror.has_tail for mirror in mirrors]
    if 0 in lengths or False in has_tails:
        # A row without tokens verified nothing: it only asks for a draft.
        used = (length > 0 and has_tail for length, has_tail in zip(lengths, has_tails, strict=True))
        commit.tail_base = u32_column(start if use else NO_TAIL for start, use in zip(starts, used, strict=True))
    else:
        commit.tail_base = commit.start
    commit.max_nodes = max_nodes.to_bytes(2, "little") * rows
    if verified is None:
        commit.verified = ALL_VERIFIED.to_bytes(4, "little", signed=True) * rows
    else:
        _fill_verified(commit, verified)


def _fill_verified(commit: VerifyCommit, verified: Sequence[Verified]) -> None:
    numbers: list[int] = []
    bitmap = bytearray()
    ends: list[int] = []
    for row in verified:
        if row is None:
            numbers.append(ALL_VERIFIED)
        elif isinstance(row, (int, np.integer)):
            numbers.append(int(row))
        else:
            numbers.append(BITMAP_VERIFIED)
            bitmap += bytes(1 if flag else 0 for flag in row)
        ends.append(len(bitmap))
    commit.verified = token_column(numbers)
    if bitmap:
        commit.bitmap_end = u32_column(ends)
        commit.bitmap = bytes(bitmap)


def verified_rows(verified: Iterable[Verified]) -> list[Verified] | None:
    """Checked; None when everything was verified, which is the usual case.

    Raises ValueError for a negative number of verified nodes.
    """
    rows = list(verified)
    for row in rows:
        if isinstance(row, (int, np.integer)) and row < 0:
            raise ValueError(
                f"verified is {row}; give how many nodes were verified, one flag per node, or None for all"
            )
    return None if all(row is None for row in rows) else rows
