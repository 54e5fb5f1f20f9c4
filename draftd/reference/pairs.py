"""What followed each token lately, whatever stood before it: the twin of cpp/include/draftd/recent_pairs.h."""

from collections.abc import Sequence

import numpy as np

MOST = 6
"""Followers of a token that are remembered, the latest ones."""

KEPT = np.float32(0.9)
"""What is left of all weights when another follower is seen, which gets 1 more."""


class RecentPairs:
    def __init__(self) -> None:
        self._followers: dict[int, list[tuple[int, np.float32]]] = {}
        self._last: int | None = None

    def add_text(self, tokens: Sequence[int]) -> None:
        """Goes on with the open document."""
        for token in tokens:
            if self._last is not None:
                self._add(self._last, token)
            self._last = token

    def end_document(self) -> None:
        self._last = None

    def _add(self, before: int, after: int) -> None:
        faded = [(token, weight * KEPT) for token, weight in self.of(before)]
        known = sum((weight for token, weight in faded if token == after), np.float32(0))
        others = [(token, weight) for token, weight in faded if token != after]
        self._followers[before] = [(after, np.float32(1) + known), *others][:MOST]

    def of(self, before: int) -> list[tuple[int, np.float32]]:
        """A token's followers and their weights, the latest first."""
        return self._followers.get(before, [])
