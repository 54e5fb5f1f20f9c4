"""The live index, as plainly as it can be said: documents are lists, matching looks at every position.

`draftd.native.Index` answers the same questions from a suffix automaton.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MATCH_LIMIT = 64
"""Longest context that is told apart, in tokens."""

FREQUENT_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Level:
    """What follows one suffix of the context.

    Suffixes of the context that end at the same places are one level, named by the longest of them.
    """

    length: int
    total: int
    """Occurrences that are followed by a token of the same document."""

    continuations: list[tuple[int, int, int]]
    """Every follower as (token, count, position where it followed last): most frequent first, then most recent."""

    @property
    def distinct(self) -> int:
        return len(self.continuations)


@dataclass(frozen=True, slots=True)
class _End:
    """The place between two tokens of a document where an occurrence ends."""

    document: int
    offset: int


class Index:
    """Documents of token ids; the last one is open and grows.

    The position of a token is how much was appended when it had been: tokens, and each end of a document as one more.
    """

    def __init__(self) -> None:
        self._documents: list[list[int]] = [[]]

    def append(self, tokens: Iterable[int]) -> None:
        """Adds tokens (ids >= 0) to the open document."""
        self._documents[-1].extend(tokens)

    def end_document(self) -> None:
        """Closes the open document, if it has any token: no match reaches over its end."""
        if self._documents[-1]:
            self._documents.append([])

    @property
    def tokens(self) -> int:
        return sum(len(document) for document in self._documents)

    @property
    def end(self) -> int:
        """Position of a token that would be appended now."""
        return sum(len(document) + 1 for document in self._documents)

    @property
    def documents(self) -> int:
        """Documents that hold at least one token."""
        return sum(1 for document in self._documents if document)

    @property
    def distinct_tokens(self) -> int:
        return self.match([])[0].distinct

    def frequent_tokens(self) -> list[tuple[int, int]]:
        """The most frequent tokens as (token, count): most frequent first, then most recent."""
        everything = self.match([])[0]
        return [(token, count) for token, count, _ in everything.continuations[:FREQUENT_TOKENS]]

    def stream(self) -> list[int]:
        """All that was appended, with -1 before each document."""
        return [token for document in self._documents for token in (-1, *document)]

    def match(self, context: Sequence[int]) -> list[Level]:
        """The levels of `context`, longest first; the last one has length 0 and stands for all text."""
        limit = min(len(context), MATCH_LIMIT)
        levels = []
        ends = self._all_ends()
        for length in range(limit + 1):
            longer = self._extend(ends, length, context[-length - 1]) if length < limit else []
            if len(longer) < len(ends):
                levels.append(self._level(length, ends))
            ends = longer
        return levels[::-1]

    def _all_ends(self) -> list[_End]:
        return [
            _End(document, offset)
            for document, tokens in enumerate(self._documents)
            for offset in range(len(tokens) + 1)
        ]

    def _extend(self, ends: list[_End], length: int, token: int) -> list[_End]:
        """Those of `ends` (where a string of `length` tokens ends) that have `token` right before that string."""
        return [
            end
            for end in ends
            if end.offset > length and self._documents[end.document][end.offset - length - 1] == token
        ]

    def _level(self, length: int, ends: list[_End]) -> Level:
        counts: dict[int, int] = {}
        last: dict[int, int] = {}
        for end in ends:
            tokens = self._documents[end.document]
            if end.offset == len(tokens):
                continue
            token = tokens[end.offset]
            counts[token] = counts.get(token, 0) + 1
            last[token] = self._position_behind(end)
        continuations = [(token, count, last[token]) for token, count in counts.items()]
        continuations.sort(key=lambda follower: (-follower[1], -follower[2]))
        return Level(length, sum(counts.values()), continuations)

    def _position_behind(self, end: _End) -> int:
        """Position of the token that follows."""
        return sum(len(tokens) + 1 for tokens in self._documents[: end.document]) + end.offset + 1
