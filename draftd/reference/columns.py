"""The packed little-endian columns that an engine takes and gives; see proto/draftd/v1/draft.proto."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from draftd.reference.draft import DraftedNode, Tree
from draftd.reference.events import Commit, Reason, Status, TailKind


@dataclass(frozen=True, slots=True)
class StepColumns:
    """The columns of a VerifyCommit, one entry per row."""

    request: bytes
    epoch: bytes
    start: bytes
    token_end: bytes
    tokens: bytes
    tail_base: bytes
    verified: bytes
    bitmap_end: bytes
    bitmap: bytes
    max_nodes: bytes

    def commits(self) -> list[Commit]:
        epochs = unpacked("<u4", self.epoch)
        rows = zip(
            epochs,
            unpacked("<u4", self.start),
            _ragged("<i4", self.tokens, self.token_end),
            unpacked("<u4", self.tail_base),
            unpacked("<i4", self.verified),
            _ragged("u1", self.bitmap, self.bitmap_end) or [()] * len(epochs),
            strict=True,
        )
        return [
            Commit(epoch, start, tokens, tail_base, verified, tuple(went_through != 0 for went_through in bitmap))
            for epoch, start, tokens, tail_base, verified, bitmap in rows
        ]


@dataclass(frozen=True, slots=True)
class TailRow:
    """What one row of a step is answered."""

    status: Status
    reason: Reason
    base: int = 0
    kind: TailKind = TailKind.TREE
    detail: int = 0
    allowed: int = 0
    accepted: int = -1
    tree: Tree = field(default_factory=Tree)


@dataclass(frozen=True, slots=True)
class Tails:
    """Tails of one step, one entry per row; ragged columns are cut at `node_end`."""

    base: bytes
    status: bytes
    reason: bytes
    kind: bytes
    detail: bytes
    allowed: bytes
    accepted: bytes
    node_end: bytes
    tokens: bytes
    parents: bytes
    survival: bytes
    source: bytes


def pack_tails(rows: Sequence[TailRow]) -> Tails:
    trees = [row.tree for row in rows]
    return Tails(
        base=_packed("<u4", [row.base for row in rows]),
        status=_packed("u1", [row.status for row in rows]),
        reason=_packed("u1", [row.reason for row in rows]),
        kind=_packed("u1", [row.kind for row in rows]),
        detail=_packed("<u4", [row.detail for row in rows]),
        allowed=_packed("<u2", [row.allowed for row in rows]),
        accepted=_packed("<i2", [row.accepted for row in rows]),
        node_end=_packed("<u4", list(accumulate(len(tree.tokens) for tree in trees))),
        tokens=_packed("<i4", [token for tree in trees for token in tree.tokens]),
        parents=_packed("<i2", [parent for tree in trees for parent in tree.parents]),
        survival=_packed("<f4", [survival for tree in trees for survival in tree.survival]),
        source=_packed("u1", [source for tree in trees for source in tree.source]),
    )


def unpack_tails(tails: Tails) -> list[TailRow]:
    """Of their trees the parents alone."""
    rows = zip(
        map(Status, unpacked("u1", tails.status)),
        map(Reason, unpacked("u1", tails.reason)),
        unpacked("<u4", tails.base),
        map(TailKind, unpacked("u1", tails.kind)),
        unpacked("<u4", tails.detail),
        unpacked("<u2", tails.allowed),
        unpacked("<i2", tails.accepted),
        (Tree(parents=list(parents)) for parents in _ragged("<i2", tails.parents, tails.node_end)),
        strict=True,
    )
    return [TailRow(*row) for row in rows]


def unpack_drafted(node_end: bytes, tokens: bytes, parents: bytes, survival: bytes) -> list[list[DraftedNode]]:
    """What a draft source has for each row; without parents they are chains, without survival none is stated."""
    drafts = []
    for first, end in pairwise([0, *unpacked("<u4", node_end)]):
        of_row = range(first, end)
        above = unpacked("<i2", parents)[first:end] if parents else range(-1, end - first - 1)
        stated = np.frombuffer(survival, "<f4")[first:end] if survival else [None] * len(of_row)
        rows = zip(unpacked("<i4", tokens)[first:end], above, stated, strict=True)
        drafts.append([DraftedNode(*node) for node in rows])
    return drafts


def _packed(kind: str, values: Sequence[float]) -> bytes:
    return np.array(values, dtype=kind).tobytes()


def unpacked(kind: str, column: bytes) -> list[int]:
    values: list[int] = np.frombuffer(column, dtype=kind).tolist()
    return values


def _ragged(kind: str, column: bytes, ends: bytes) -> list[tuple[int, ...]]:
    """One tuple of values per row."""
    values = unpacked(kind, column)
    return [tuple(values[first:end]) for first, end in pairwise([0, *unpacked("<u4", ends)])]
