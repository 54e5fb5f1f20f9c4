"""What the text that came says of the drafts before it: the twin of cpp/src/session/outcome.

An engine that waits verifies the last tail. One that steps ahead verifies what is left of the tail before it: the nodes
below those that the tokens committed in between went through. What such a node's survival predicts is what becomes of
it given those tokens.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from draftd.reference.events import (
    ALL_NODES,
    BY_BITMAP,
    NO_TAIL,
    Commit,
    CountOutcome,
    CountStaleTail,
    Effect,
    Tail,
    Teach,
)

NO_OUTCOME = -1
"""Accepted nodes of a commit that used neither of the last two tails."""


@dataclass(frozen=True, slots=True)
class Outcome:
    effects: tuple[Effect, ...]
    accepted: int = NO_OUTCOME
    """Nodes that the text went through, of the tail that was used."""


def outcome_of(commit: Commit, tail: Tail | None, earlier: Tail | None, text: tuple[int, ...]) -> Outcome:
    """`text` is all that counts after the commit, `tail` the last before it, `earlier` the one before that."""
    stale = (CountStaleTail(),) if commit.tail_base != NO_TAIL else ()
    if tail is None or tail.base != commit.start:
        return Outcome(stale)
    tokens = text[tail.base :]
    if _is_used(tail, commit):
        path = _path(tail, [], tokens, commit)
        verified = _verified_below(tail, -1, commit)
        fates = _fates(tail, -1, verified, path)
        return Outcome(_count(verified, path) + _teach(tail, path, tokens, fates), len(path))
    # What comes where the last draft was made tells of it, also when it was empty, or not the one that was used.
    path = _path(tail, [], tokens, None)
    if earlier is None or not _is_used(earlier, commit):
        return Outcome(stale + _teach(tail, path, tokens, ()))

    since = text[earlier.base : tail.base]
    passed = _path(earlier, [], since, None)
    if len(passed) < tail.base - earlier.base:  # nothing was left of it
        return Outcome(_teach(tail, path, tokens, ()), len(passed))
    accepted = _path(earlier, passed, tokens, commit)[len(passed) :]
    verified = _verified_below(earlier, passed[-1], commit)
    fates = _fates(earlier, passed[-1], verified, accepted)
    return Outcome(_count(verified, accepted) + _teach(tail, path, tokens, fates), len(passed) + len(accepted))


def _is_used(tail: Tail, commit: Commit) -> bool:
    return bool(tail.tokens) and tail.base == commit.tail_base


def _went_through(node: int, commit: Commit) -> bool:
    if commit.verified == ALL_NODES:
        return True
    if commit.verified == BY_BITMAP:
        return node < len(commit.bitmap) and commit.bitmap[node]
    return node < commit.verified


def _path(tail: Tail, path: Sequence[int], tokens: Sequence[int], commit: Commit | None) -> list[int]:
    """A path goes on as far as `tokens` lead, through verified nodes where a commit says which those are."""
    path = list(path)
    for token in tokens:
        children = (
            child
            for child, parent in enumerate(tail.parents)
            if parent == (path[-1] if path else -1)
            and tail.tokens[child] == token
            and (commit is None or _went_through(child, commit))
        )
        child = next(children, None)
        if child is None:
            break
        path.append(child)
    return path


def _verified_below(tail: Tail, root: int, commit: Commit) -> dict[int, int]:
    """The nodes below `root`, -1: all of them, that went through the target, and their depths."""
    depths: dict[int, int] = {}
    for node, parent in enumerate(tail.parents):
        if parent == root or parent in depths:
            depths[node] = depths.get(parent, -1) + 1
    return {node: depth for node, depth in depths.items() if _went_through(node, commit)}


def _count(verified: dict[int, int], accepted: Sequence[int]) -> tuple[Effect, ...]:
    if not verified:
        return ()
    depths = list(verified.values())
    return (CountOutcome(tuple(map(depths.count, range(max(depths) + 1))), len(accepted)),)


def _fates(tail: Tail, root: int, verified: dict[int, int], accepted: Sequence[int]) -> tuple[tuple[float, bool], ...]:
    raw = tail.lesson.raw
    if not raw:  # a preset drafted
        return ()
    of_root = max(raw[root], sys.float_info.min) if root >= 0 else 1.0  # a long path's may be no more than 0
    return tuple((raw[node] / of_root, node in accepted) for node in verified)


def _teach(
    tail: Tail, path: Sequence[int], tokens: Sequence[int], fates: tuple[tuple[float, bool], ...]
) -> tuple[Effect, ...]:
    """The last tail was taken by the text along `path`."""
    candidates = tail.lesson.candidates
    places = [candidates[node + 1] for node in (-1, *path)] if candidates else []
    return (Teach(tuple(zip(places, tokens, strict=False)), fates),) if candidates or fates else ()
