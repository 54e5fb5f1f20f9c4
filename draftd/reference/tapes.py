"""Which windows of text a request gets, slow and readable: the twin of cpp/src/engine/tape_selection.

Every source is asked where the end of the request's text stands in it. The places that agree with it longest and go on
differently become windows: some text before the place, and what follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from draftd.reference.index import Index
from draftd.reference.segment import NEAREST, SegmentSet

BEFORE, AFTER = 16, 48
DISTINCT = 4
"""Two windows are the same if that many tokens behind their matches are."""

SEPARATOR = -1


@dataclass(frozen=True, slots=True)
class Place:
    """Where the end of a text stands in another."""

    length: int
    """Tokens of the text that stand before it."""

    source: list[int]
    """Documents, with a separator before and behind each."""

    at: int
    """Of the token that follows."""

    corpus: int
    """0: histories."""

    def after(self, vocabulary: int, most: int) -> list[int]:
        return _until_separator(self.source[self.at : self.at + most], vocabulary)

    def before(self, vocabulary: int) -> list[int]:
        return _until_separator(self.source[: self.at][-BEFORE:][::-1], vocabulary)[::-1]


def _until_separator(tokens: Sequence[int], vocabulary: int) -> list[int]:
    ends = (place for place, token in enumerate(tokens) if token == SEPARATOR or token >= vocabulary)
    return list(tokens[: next(ends, len(tokens))])


def live_places(index: Index, text: Sequence[int], least: int) -> list[Place]:
    """Those of the contexts longer than `least`, of each the most frequent follower first. A context with more
    followers than a source's places says nothing, nor do shorter ones."""
    places: list[Place] = []
    for level in index.match(text):
        if level.length <= least or len(places) >= NEAREST or level.distinct > NEAREST:
            break
        stream = index.stream()
        places += [Place(level.length, stream, last - 1, 0) for _token, _count, last in level.continuations]
    return places


def sealed_places(segments: SegmentSet, text: Sequence[int], corpus: int) -> list[Place]:
    return [
        Place(found.length, [symbol - 1 for symbol in found.segment.stream], found.slot, corpus)
        for found in segments.nearest(text)
    ]


def windows(places: Sequence[Place], vocabulary: int, most: int) -> list[tuple[list[int], int]]:
    """(tokens, corpus) of at most `most` windows, that of the longest match last."""
    chosen: list[Place] = []
    for place in sorted(places, key=lambda place: -place.length):
        begins = place.after(vocabulary, DISTINCT)
        if begins and len(chosen) < most and begins not in [other.after(vocabulary, DISTINCT) for other in chosen]:
            chosen.append(place)
    return [(place.before(vocabulary) + place.after(vocabulary, AFTER), place.corpus) for place in reversed(chosen)]
