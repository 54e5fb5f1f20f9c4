"""The tail buffer: what is left of a draft that the text has outgrown, for an engine that does not wait.

Such an engine commits what it has and takes what came so far: a tail whose base lies some tokens back. While those
tokens are a path of the tail, what is below them still continues the text; when they leave it, nothing does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftd.client.columns import u32_column
from draftd.client.draft import Draft, MalformedTailError, Tails
from draftd.client.mirror import Mirror
from draftd.client.standing import Standing
from draftd.client.trees import NONE, DraftTree
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
            tails = Tails(reply.tail)
            tails.check(self._vocabulary_size)
            if (reply.tail.request, reply.tail.epoch) != rows:
                raise MalformedTailError("its rows are not those that were asked for")
        except MalformedTailError as error:
            counters.unknown_frames += 1
            self._standing.last_error = f"the drafter's answer cannot be read: {error}"
            return
        counters.steps += 1
        counters.unknown_tails += tails.unknown_kinds()
        for row, mirror in enumerate(mirrors):
            draft = Draft(tails, row)
            oldest = max(mirror.synced_in, mirror.kept.step if mirror.kept else 0)
            is_beyond = not mirror.prompt_length <= draft.base <= mirror.length
            if foreign or mirror.closed or is_beyond or reply.step < oldest:
                counters.stale_tails += 1
            else:
                mirror.kept = KeptTail(reply.step, draft)

    def left(self, mirrors: Sequence[Mirror], most: int) -> Tails:
        """Of each request's newest tail what continues its text as it is now, at most `most` nodes.

        The next commit of the request speaks of these nodes."""
        trees: list[DraftTree] = []
        sources: list[bytes] = []
        reasons: list[Reason] = []
        for mirror in mirrors:
            tree, source, reason = self._left_of(mirror, most)
            trees.append(tree)
            sources.append(source)
            reasons.append(reason)
        kinds = bytes(int(mirror.kept.draft.kind) if mirror.kept else 0 for mirror in mirrors)
        return Tails(
            DraftTail(
                epoch=u32_column(mirror.epoch for mirror in mirrors),
                base=u32_column(mirror.length for mirror in mirrors),
                status=bytes(mirror.kept.draft.status if mirror.kept else mirror.refused for mirror in mirrors),
                reason=bytes(reasons),
                kind=kinds,
                node_end=np.cumsum([len(tree.tokens) for tree in trees]).astype("<u4").tobytes(),
                tokens=b"".join(tree.tokens.tobytes() for tree in trees),
                parents=b"".join(tree.parents.tobytes() for tree in trees),
                survival=b"".join(tree.survival.tobytes() for tree in trees),
                source=b"".join(sources),
            )
        )

    def _left_of(self, mirror: Mirror, most: int) -> tuple[DraftTree, bytes, Reason]:
        mirror.told_of_no_draft()
        kept = mirror.kept
        if most == 0:
            return _EMPTY, b"", Reason.NOT_ASKED
        if kept is None:
            return _EMPTY, b"", Reason.LATE if mirror.refused == Status.OK else Reason.REFUSED
        draft = kept.draft
        if not len(draft):
            return _EMPTY, b"", draft.reason
        whole = DraftTree(draft.tokens, draft.parents, draft.survival)
        node = node_after(whole, mirror.since(draft.base))
        if node is None:
            self._standing.counters.dropped_tails += 1
            mirror.kept = None
            return _EMPTY, b"", Reason.NO_MATCH
        tree, numbers = subtree(whole, node)
        if not len(numbers):
            return _EMPTY, b"", Reason.NO_MATCH
        numbers = numbers[:most]
        mirror.tail_base = draft.base
        mirror.tail_nodes = len(whole.tokens)
        mirror.part = numbers
        first = DraftTree(tree.tokens[:most], tree.parents[:most], tree.survival[:most])
        return first, draft.source[numbers].tobytes(), Reason.NOT_EMPTY


_EMPTY = DraftTree(np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0, np.float32))
