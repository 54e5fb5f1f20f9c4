"""The commit columns of one step: one row per request."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from draftd.client.columns import token_column, token_columns, u16_column, u32_column, whole
from draftd.client.hidden_states import States, states_bytes
from draftd.client.limits import Limits
from draftd.client.mirror import Mirror
from draftd.client.mirrors import Mirrors
from draftd.client.pacing import Load
from draftd.wire import ALL_VERIFIED, BITMAP_VERIFIED, MOST_TAPE_WINDOWS, NO_TAIL, StepBatch, VerifyCommit

ROW_BYTES = 38  # of a VerifyCommit, without tokens, bitmap and values of hidden states
MOST_NODES = 2**16 - 1  # VerifyCommit.max_nodes is a column of u16

# Which nodes of the last delivered draft went through the target: the first so many, or one flag per node.
# None: all of them.
Verified = int | Sequence[bool] | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted next; of 0 nodes or with a budget of 0, nothing. Raises ValueError for a wish nobody can have."""

    max_nodes: int  # of each request; rows may want less
    budget: int | None = None  # of all requests together; None: whatever max_nodes allows
    min_survival: float = 0.0
    load: Load | None = None  # what the step says of its cost
    tapes: int = 0  # windows of text for each request

    def __post_init__(self) -> None:
        # Engines compute budgets with numpy: its integers are made Python's.
        object.__setattr__(self, "max_nodes", _nodes(self.max_nodes))
        if self.budget is not None:
            object.__setattr__(self, "budget", whole("budget", self.budget))
            if not 0 <= self.budget < 2**32:
                raise ValueError(f"budget is {self.budget}; give at least 0, or None for no limit over the batch")
        if self.budget == 0:  # which on the wire is no limit
            object.__setattr__(self, "max_nodes", 0)
            object.__setattr__(self, "budget", None)
        object.__setattr__(self, "tapes", whole("tapes", self.tapes))
        if not 0 <= self.tapes <= MOST_TAPE_WINDOWS:
            raise ValueError(f"{self.tapes} windows of one request were asked for; ask for 0 to {MOST_TAPE_WINDOWS}")
        if not 0.0 <= self.min_survival <= 1.0:
            raise ValueError(f"min_survival is {self.min_survival}; a probability is between 0 and 1")

    @property
    def asked_nodes(self) -> int:
        """Of each request. A draft that becomes a tape is used when the text has gone some of its way."""
        return min(2 * self.max_nodes, MOST_NODES) if self.tapes else self.max_nodes

    def fill(self, batch: StepBatch, tape_news: int) -> None:
        """All of a step that a wish says, but for max_nodes, which is a column of the commit."""
        batch.budget = self.budget or 0
        batch.min_survival = self.min_survival
        if self.load is not None:
            self.load.fill(batch)
        if self.tapes:
            batch.tape_windows = self.tapes
            batch.tape_news = tape_news

    def share(self, rows: int, of: int) -> "Wish":
        """What a part of a step may wish for: `rows` of its `of` requests."""
        return self if self.budget is None or of == 0 else replace(self, budget=-(-self.budget * rows // of))

    def shares(self, rows: Sequence[int]) -> "list[Wish]":
        """What the parts of a step may wish for, of so many requests each: together no more than the whole."""
        shares: list[Wish] = []
        budget, rows_left = self.budget, sum(rows)
        for of_part in rows:
            share = replace(self, budget=budget).share(of_part, rows_left)
            shares.append(share)
            budget = budget - (share.budget or 0) if budget is not None else None
            rows_left -= of_part
        return shares

    def beside(self, tokens: int, *, is_first: bool) -> "Wish":
        """Of a part of a step whose other parts have so many tokens."""
        return replace(self, load=(self.load or Load()).beside(tokens, is_first=is_first))


def wanted_nodes(max_nodes: int | Mapping[Any, int], requests: Iterable[object]) -> tuple[int, list[int] | None]:
    """The most of any request, and those of each where there is a mapping: what it does not name wants none.

    Raises ValueError for what is no number of nodes.
    """
    if not isinstance(max_nodes, Mapping):
        return max_nodes, None
    nodes = [_nodes(max_nodes.get(request, 0)) for request in requests]
    return max(nodes, default=0), nodes


def _nodes(number: int) -> int:
    number = whole("max_nodes", number)
    if not 0 <= number <= MOST_NODES:
        raise ValueError(f"{number} nodes of one request were asked for; ask for 0 to {MOST_NODES}")
    return number


class RowColumns:
    """Handle and epoch columns, kept from step to step: engines step the same requests again and again."""

    def __init__(self, known: Mirrors) -> None:
        self._known = known
        self._mirrors: list[Mirror] = []
        self._columns = (b"", b"")

    def of(self, mirrors: list[Mirror]) -> tuple[bytes, bytes]:
        """Raises ValueError for a request of another client."""
        if mirrors != self._mirrors:
            for mirror in mirrors:
                if not mirror.closed and self._known.find(mirror.handle, mirror.epoch) is not mirror:
                    raise ValueError(f"request {mirror.opening.request_id!r} was opened by another client")
            self._mirrors = mirrors
            self._columns = (
                u32_column(mirror.handle for mirror in mirrors),
                u32_column(mirror.epoch for mirror in mirrors),
            )
        return self._columns


class Rows:
    """What a step says of its requests: one row per mirror.

    Raises ValueError for tokens that are no row of integers, before anything has changed.
    """

    __slots__ = ("column", "ends", "hidden", "mirrors", "nodes", "tokens", "verified")

    def __init__(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        verified: Sequence[Verified] | None = None,
        nodes: Sequence[int] | None = None,
        hidden: Sequence[States] | None = None,
    ) -> None:
        self.mirrors = mirrors
        self.tokens = tokens
        self.verified = verified  # None: every node of every row
        self.nodes = nodes  # wanted by each row; None: as many as the step's wish says
        self.hidden = hidden  # of the target; None: no row has any
        self.column, self.ends = token_columns(tokens)

    @property
    def size(self) -> int:
        """In bytes, as columns."""
        bitmaps = sum(map(_bitmap_bytes, self.verified)) if self.verified is not None else 0
        states = sum(map(states_bytes, self.hidden)) if self.hidden is not None else 0
        return ROW_BYTES * len(self.mirrors) + len(self.column) + bitmaps + states

    def with_newest_states(self, limits: Limits) -> "Rows":
        """Of one row that is too long for any frame, without as many of its oldest hidden states as it takes."""
        if self.hidden is None or self.hidden[0] is None:
            return self
        room = limits.payload_bytes - (self.size - states_bytes(self.hidden[0]))
        return Rows(self.mirrors, self.tokens, self.verified, self.nodes, [self.hidden[0].newest(room)])

    def without_states(self) -> "Rows":
        return Rows(self.mirrors, self.tokens, self.verified, self.nodes)

    def without_tokens(self) -> "Rows":
        """The same requests, of which everything is told but their hidden states: they only ask for drafts."""
        return Rows(self.mirrors, [()] * len(self.mirrors), nodes=self.nodes, hidden=self.hidden)

    def parts(self, limits: Limits) -> list["Rows"]:
        """Cut so that a frame takes each part; a row that is too long for any frame is a part of its own."""
        if len(self.mirrors) <= limits.rows and self.size <= limits.payload_bytes:
            return [self]
        starts = [0]
        room = limits.payload_bytes
        for row, tokens in enumerate(self.tokens):
            size = ROW_BYTES + 4 * len(tokens) + (_bitmap_bytes(self.verified[row]) if self.verified else 0)
            size += states_bytes(self.hidden[row]) if self.hidden else 0
            if row > starts[-1] and (row - starts[-1] == limits.rows or size > room):
                starts.append(row)
                room = limits.payload_bytes
            room -= size
        return [self._slice(start, end) for start, end in pairwise([*starts, len(self.mirrors)])]

    def _slice(self, start: int, end: int) -> "Rows":
        verified = self.verified[start:end] if self.verified is not None else None
        nodes = self.nodes[start:end] if self.nodes is not None else None
        hidden = self.hidden[start:end] if self.hidden is not None else None
        return Rows(self.mirrors[start:end], self.tokens[start:end], verified, nodes, hidden)


def _bitmap_bytes(verified: Verified) -> int:
    return 0 if verified is None or isinstance(verified, (int, np.integer)) else len(verified)


def fill_commit(commit: VerifyCommit, rows: Rows, starts: list[int], max_nodes: int) -> None:
    """All columns but request and epoch. `starts` are the committed lengths before the tokens of the rows."""
    commit.tokens = rows.column
    commit.token_end = rows.ends
    commit.start = u32_column(starts)
    bases = [mirror.tail_base for mirror in rows.mirrors]
    lengths = list(map(len, rows.tokens))
    if 0 in lengths:  # such a row verified nothing: it only asks for a draft
        bases = [base if length else NO_TAIL for base, length in zip(bases, lengths, strict=True)]
    commit.tail_base = u32_column(bases)
    if rows.nodes is None:
        commit.max_nodes = max_nodes.to_bytes(2, "little") * len(starts)
    else:
        commit.max_nodes = u16_column(min(nodes, max_nodes) for nodes in rows.nodes)
    if rows.verified is None:
        commit.verified = ALL_VERIFIED.to_bytes(4, "little", signed=True) * len(starts)
    else:
        _fill_verified(commit, rows.verified)


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


def verified_rows(mirrors: Sequence[Mirror], verified: Iterable[Verified] | None) -> list[Verified] | None:
    """Checked, and said of the nodes of whole tails; None when everything was verified, which is the usual case.

    Raises ValueError for what is neither a number of nodes nor one flag per node.
    """
    is_part = True in [mirror.part is not None for mirror in mirrors]  # a list: this is the hot path
    if verified is None and not is_part:
        return None
    rows: list[Verified] = [None] * len(mirrors) if verified is None else list(verified)
    for row in rows:
        is_count = isinstance(row, (int, np.integer)) and 0 <= row < 2**31
        if row is not None and not is_count and not isinstance(row, (Sequence, np.ndarray)):
            raise ValueError(
                f"verified is {row}; give how many nodes were verified, one flag per node, or None for all"
            )
    if is_part:
        rows = [_of_tail(mirror, row) for mirror, row in zip(mirrors, rows, strict=True)]
    return None if all(row is None for row in rows) else rows


def _of_tail(mirror: Mirror, verified: Verified) -> Verified:
    """What is said of a part of a tail, as flags of the tail's own nodes."""
    if mirror.part is None:
        return verified
    if verified is None:
        numbers = mirror.part
    elif isinstance(verified, (int, np.integer)):
        numbers = mirror.part[: int(verified)]
    else:
        numbers = mirror.part[: len(verified)][np.asarray(verified, np.bool_)[: len(mirror.part)]]
    flags = np.zeros(mirror.tail_nodes, np.bool_)
    flags[numbers] = True
    return flags.tolist()
