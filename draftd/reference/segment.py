"""Sealed text, as plainly as it can be said: contexts are lists that are sorted, a search looks where it would stand.

`draftd.native.Segment` keeps the same order in packed columns of a file.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from draftd.reference.index import FREQUENT_TOKENS, MATCH_LIMIT

SEPARATOR = 0
"""Symbol before and behind each document; a token's symbol is its id + 1."""

NEAREST = 16


class Segment:
    """Documents that don't change; those without tokens are left out."""

    def __init__(self, documents: Iterable[Sequence[int]]) -> None:
        self.documents = [list(document) for document in documents if document]
        self.stream = [SEPARATOR]
        for document in self.documents:
            self.stream += [*(token + 1 for token in document), SEPARATOR]

    @cached_property
    def entries(self) -> list[int]:
        """The slot of every token, sorted by the stream read backwards from before the slot."""
        slots = [slot for slot, symbol in enumerate(self.stream) if symbol != SEPARATOR]
        return sorted(slots, key=self.before)

    def before(self, slot: int) -> list[int]:
        """The stream before a slot, read backwards."""
        return self.stream[:slot][::-1]

    @property
    def tokens(self) -> int:
        return len(self.stream) - len(self.documents) - 1

    @property
    def distinct_tokens(self) -> int:
        return len({*self.stream} - {SEPARATOR})

    def frequent_tokens(self) -> list[tuple[int, int]]:
        """The most frequent tokens as (token, count): most frequent first, then most recent."""
        counts: dict[int, int] = {}
        last: dict[int, int] = {}
        for slot, symbol in enumerate(self.stream):
            if symbol != SEPARATOR:
                counts[symbol - 1] = counts.get(symbol - 1, 0) + 1
                last[symbol - 1] = slot
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], -last[entry[0]]))
        return ranked[:FREQUENT_TOKENS]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a suffix of a context occurs."""

    segment: Segment
    slot: int
    """Of the token that follows."""

    age: int
    """Position in the set of segments; the larger, the more recent."""

    length: int
    """Tokens of the context right before it, 1 to 64."""

    def follows(self, path: Sequence[int]) -> bool:
        """Whether these tokens stand there."""
        return self.segment.stream[self.slot : self.slot + len(path)] == [token + 1 for token in path]

    def follower(self, depth: int) -> int | None:
        """The token `depth` tokens further on; None where the document ends."""
        symbol = self.segment.stream[self.slot + depth]
        return None if symbol == SEPARATOR else symbol - 1


class SegmentSet:
    """Segments that are read as one text, oldest first."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = list(segments)

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)

    def nearest(self, context: Sequence[int]) -> list[Occurrence]:
        """The 16 occurrences that agree with the context longest, longest first; of equally long ones the newest
        segment's, and in a segment those next to where the context would stand, behind it first."""
        found: list[Occurrence] = []
        age = sum(len(segment.stream) for segment in self.segments)
        for segment in reversed(self.segments):
            age -= len(segment.stream)
            found += _neighbours(segment, age, context)
        return sorted(found, key=lambda occurrence: -occurrence.length)[:NEAREST]

    def longest(self, context: Sequence[int]) -> int:
        """Length of the longest suffix of the context that occurs."""
        return max((occurrence.length for occurrence in self.nearest(context)), default=0)


def _neighbours(segment: Segment, age: int, context: Sequence[int]) -> list[Occurrence]:
    backwards = [token + 1 for token in context[-MATCH_LIMIT:]][::-1]
    entries = segment.entries
    above = bisect_left(entries, backwards, key=segment.before)
    below = above - 1

    def agreement(entry: int) -> int:
        if not 0 <= entry < len(entries):
            return 0
        length = 0
        for ours, theirs in zip(backwards, segment.before(entries[entry]), strict=False):
            if ours != theirs:
                break
            length += 1
        return length

    found: list[Occurrence] = []
    while len(found) < NEAREST:
        length_above, length_below = agreement(above), agreement(below)
        if max(length_above, length_below) == 0:
            break
        if length_above >= length_below:
            entry, above = above, above + 1
        else:
            entry, below = below, below - 1
        slot = entries[entry]
        found.append(Occurrence(segment, slot, age + slot, max(length_above, length_below)))
    return found
