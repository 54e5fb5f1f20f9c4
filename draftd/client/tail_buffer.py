"""The tail buffer: what is left of a draft that the text has outgrown, for an engine that does not wait.

Such an engine commits what it has and takes what came so far: a tail whose base lies some tokens back. While those
tokens are a path of the tail, what is below them still continues the text; when they leave it, nothing does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from draftd.client.columns import u32_column
from draftd.client.draft import Draft, MalformedTailError, Tails
from draftd.client.likeliest import likeliest, path_survival
from draftd.client.mirror import Mirror
from draftd.client.rows import Wish
from draftd.client.standing import Standing
from draftd.client.trees import NONE, DraftTree, kept_nodes
from draftd.wire import DraftTail, Reason, Status, StepReply


@dataclass(frozen=True, slots=True)
class KeptTail:
    """A request's newest tail."""

    step: int  # that it answers
    draft: Draft


def node_after(tree: DraftTree, path: Sequence[int]) -> int | None:
    """The node that these tokens lead to, -1 for none of them; None where they leave the tree."""
    children: dict[tuple[int, int], int] = {}
    for node, key in enumerate(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)):
        children.setdefault(key, node)
    reached = NONE
    for token in path:
        child = children.get((reached, token))
        if child is None:
            return None
        reached = child
    return reached


def nodes_below(parents: NDArray[np.int16], node: int) -> NDArray[np.int64]:
    """int64[m]: the numbers of a node's descendants, in their order; of -1, all nodes."""
    if node == NONE:
        return np.arange(len(parents))
    is_below = [False] * len(parents)
    for below, parent in enumerate(parents.tolist()):
        is_below[below] = parent == node or (parent >= 0 and is_below[parent])
    return np.flatnonzero(is_below)


def subtree(tree: DraftTree, node: int) -> tuple[DraftTree, NDArray[np.int64]]:
    """What is below a node as a tree of its own, and int64[m], which nodes that are.

    Survival there is the probability of a node when everything up to the new root is accepted."""
    numbers = nodes_below(tree.parents, node)
    new_number = np.full(len(tree.parents) + 1, NONE, np.int16)  # the last entry is of parent -1
    new_number[numbers] = np.arange(len(numbers), dtype=np.int16)
    reached = float(tree.survival[node]) if node != NONE else 1.0
    survival = tree.survival[numbers]
    conditional = np.minimum(survival / np.float32(reached), np.float32(1)) if reached > 0 else np.zeros_like(survival)
    return DraftTree(tree.tokens[numbers], new_number[tree.parents[numbers]], conditional.astype(np.float32)), numbers


_EMPTY = DraftTree(np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0, np.float32))
_NO_NODES = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Part:
    """What is left of a tail: a tree of its own, and int64[n], which nodes of the tail that are."""

    reason: Reason
    tree: DraftTree = _EMPTY
    numbers: NDArray[np.int64] = field(default_factory=lambda: _NO_NODES)
    kept: KeptTail | None = None  # the tail; None where none was looked at

    @property
    def source(self) -> bytes:
        """u8[n]"""
        return self.kept.draft.source[self.numbers].tobytes() if self.kept else b""

    def only(self, nodes: NDArray[np.bool_], min_survival: float) -> "Part":
        """The same without the nodes where the flags are not set."""
        if nodes.all():
            return self
        reason = self.reason
        if not nodes.any():
            is_likely = bool((self.tree.survival >= min_survival).any())
            reason = Reason.BUDGET_SPENT if is_likely else Reason.BELOW_THRESHOLD
        return Part(reason, kept_nodes(self.tree, nodes), self.numbers[nodes], self.kept)


class TailBuffer:
    """Keeps each request's newest tail, and gives what is left of it. `vocabulary_size` is what the client states."""

    def __init__(self, standing: Standing, vocabulary_size: int) -> None:
        self._standing = standing
        self._vocabulary_size = vocabulary_size

    def arrived(self, reply: StepReply, mirrors: Sequence[Mirror], rows: tuple[bytes, bytes], *, foreign: bool) -> None:
        """Takes the answer to a step of these rows. `foreign`: it is from another life of the drafter than we know.

        Rejected, and counted, is what can't continue a request's text any more: of another epoch or life, from beyond
        the text that is left, from before the last sync, older than what is kept."""
        counters = self._standing.counters
        try:
            tails = Tails.received(reply.tail, rows, self._vocabulary_size)
        except MalformedTailError as error:
            counters.unknown_frames += 1
            self._standing.last_error = f"the drafter's answer cannot be read: {error}"
            return
        counters.steps += 1
        counters.unknown_tails += tails.unknown_kinds()
        for mirror, draft in zip(mirrors, tails.drafts(), strict=True):
            if draft.reason is Reason.REFUSED:
                continue  # there is no tail: the reply's errors say why
            oldest = max(mirror.synced_in, mirror.kept.step if mirror.kept else 0)
            is_beyond = not mirror.prompt_length <= draft.base <= mirror.length
            if foreign or mirror.closed or is_beyond or reply.step < oldest:
                counters.stale_tails += 1
            else:
                mirror.kept = KeptTail(reply.step, draft)

    def left(self, mirrors: Sequence[Mirror], wish: Wish) -> Tails:
        """Of each request's newest tail what continues its text as it is now, within the limits of this wish.

        The next commit of the request speaks of these nodes, and where none is left of that, unless a later tail may
        have the same base: a base is all that tells a drafter's tails apart."""
        parts = [self._left_of(mirror, wish.max_nodes) for mirror in mirrors]
        kept = likeliest([path_survival(part.tree) for part in parts], wish.budget, wish.min_survival)
        parts = [part.only(nodes, wish.min_survival) for part, nodes in zip(parts, kept, strict=True)]
        for mirror, part in zip(mirrors, parts, strict=True):
            if part.kept is not None:
                mirror.speaks_of(part.kept, part.numbers)
        return Tails(
            DraftTail(
                epoch=u32_column(mirror.epoch for mirror in mirrors),
                base=u32_column(mirror.length for mirror in mirrors),
                status=bytes(mirror.kept.draft.status if mirror.kept else mirror.refused for mirror in mirrors),
                reason=bytes(part.reason for part in parts),
                kind=bytes(int(mirror.kept.draft.kind) if mirror.kept else 0 for mirror in mirrors),
                node_end=np.cumsum([len(part.numbers) for part in parts]).astype("<u4").tobytes(),
                tokens=b"".join(part.tree.tokens.tobytes() for part in parts),
                parents=b"".join(part.tree.parents.tobytes() for part in parts),
                survival=b"".join(part.tree.survival.tobytes() for part in parts),
                source=b"".join(part.source for part in parts),
            )
        )

    def _left_of(self, mirror: Mirror, most: int) -> Part:
        mirror.told_of_no_draft()
        kept = mirror.kept
        if most == 0:
            return Part(Reason.NOT_ASKED)
        if kept is None:
            return Part(Reason.LATE if mirror.refused == Status.OK else Reason.REFUSED)
        draft = kept.draft
        if not len(draft):
            return Part(draft.reason)
        whole = DraftTree(draft.tokens, draft.parents, draft.survival)
        node = node_after(whole, mirror.since(draft.base))
        if node is None:
            self._standing.counters.dropped_tails += 1
            mirror.kept = None
            return Part(Reason.NO_MATCH, kept=kept)
        tree, numbers = subtree(whole, node)
        if not len(numbers):
            return Part(Reason.NO_MATCH, kept=kept)
        first = DraftTree(tree.tokens[:most], tree.parents[:most], tree.survival[:most])
        return Part(Reason.NOT_EMPTY, first, numbers[:most], kept)
