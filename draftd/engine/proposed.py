"""What a draft source proposed for a request, until the next commit says what became of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftd.wire import ALL_VERIFIED, BITMAP_VERIFIED, VerifyCommit


@dataclass(frozen=True, slots=True)
class Proposed:
    """The source's nodes, and which nodes of the draft they became."""

    tokens: list[int]
    parents: list[int]
    places: list[int]
    """In the draft; -1: it was left out."""

    @classmethod
    def of(cls, tokens: NDArray[np.int32], parents: NDArray[np.int16], draft: Sequence[tuple[int, int]]) -> "Proposed":
        """`draft`: of each of its nodes the parent and the token."""
        children = {node: place for place, node in reversed(list(enumerate(draft)))}
        places: list[int] = []
        for token, parent in zip(tokens.tolist(), parents.tolist(), strict=True):
            above = -1 if parent < 0 else places[parent]
            is_gone = parent >= 0 and above < 0
            places.append(-1 if is_gone else children.get((above, token), -1))
        return cls(tokens.tolist(), parents.tolist(), places)

    def outcome(self, committed: "Committed", row: int) -> tuple[int, int]:
        """How many of the nodes went through the target, and how many of these, one below the other, it accepted; the
        row's commit is of this draft."""
        verified = committed.verified(row)
        went = [place >= 0 and verified(place) for place in self.places]
        nodes = [
            (parent, token) if it_went else None
            for parent, token, it_went in zip(self.parents, self.tokens, went, strict=True)
        ]
        return sum(went), depth_along(nodes, committed.tokens(row))


def depth_along(nodes: Sequence[tuple[int, int] | None], tokens: Sequence[int]) -> int:
    """How many of the tokens a tree has, one below the other. Of each node the parent and the token; None: it does not
    count."""
    places = {node: place for place, node in reversed(list(enumerate(nodes))) if node is not None}
    depth, above = 0, -1
    for token in tokens:
        here = places.get((above, token))
        if here is None:
            break
        depth, above = depth + 1, here
    return depth


class Committed:
    """What the commits of a step say of drafts, row by row. Each column is read once, for to read one is to copy it."""

    def __init__(self, commit: VerifyCommit) -> None:
        self._token_ends = np.frombuffer(commit.token_end, "<u4").tolist()
        self._tokens = np.frombuffer(commit.tokens, "<i4")
        self._verified = np.frombuffer(commit.verified, "<i4").tolist()
        self._bitmap_ends = np.frombuffer(commit.bitmap_end, "<u4").tolist()
        self._bitmap = commit.bitmap

    def tokens(self, row: int) -> list[int]:
        tokens: list[int] = self._tokens[_span(self._token_ends, row)].tolist()
        return tokens

    def verified(self, row: int) -> Callable[[int], bool]:
        """Whether a node of the draft went through the target."""
        verified = self._verified[row]
        if verified == BITMAP_VERIFIED:
            bitmap = self._bitmap[_span(self._bitmap_ends, row)]
            return lambda place: place < len(bitmap) and bitmap[place] != 0
        return lambda place: verified == ALL_VERIFIED or place < verified


def _span(ends: Sequence[int], row: int) -> slice:
    return slice(ends[row - 1] if row else 0, ends[row])
