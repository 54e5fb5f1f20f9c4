"""A flight: what running requests have generated so far, for others to draft from before it is in the history."""

from collections.abc import Sequence

from draftd.reference.index import Index

PIECE = 8
"""New tokens of a request that are worth a document."""

OVERLAP = 8
"""Tokens before them that go along, for matches to have context."""

Key = tuple[int, int]
"""Verifier and handle of a request."""


class Flight:
    """Pieces of running requests' outputs, each a document. What a request leaves behind in it is dead."""

    def __init__(self) -> None:
        self.index = Index()
        self._living: dict[Key, int] = {}
        """Tokens by request, in the order in which they came."""

    def add(self, key: Key, piece: Sequence[int]) -> None:
        self.index.append(piece)
        self.index.end_document()
        self._living[key] = self._living.get(key, 0) + len(piece)

    def leave(self, key: Key) -> None:
        """What it has of the request is dead from now on."""
        self._living.pop(key, None)

    def empty(self) -> list[Key]:
        """Drops all text; returns whose it was."""
        aboard = list(self._living)
        self.index, self._living = Index(), {}
        return aboard

    def has_others(self, key: Key) -> bool:
        """Whether there is text of another request."""
        return any(other != key for other in self._living)

    @property
    def dead_tokens(self) -> int:
        return self.index.tokens - sum(self._living.values())

    @property
    def is_mostly_dead(self) -> bool:
        return self.dead_tokens * 8 > self.index.tokens
