"""What a text knows of a drafted node, counted in the documents themselves: the twin of cpp/src/engine/text_parts.cpp.

A node's context is the request's text and the path to the node, its last 64 tokens. What a source says is of the
longest suffix of it that the node's token follows there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from draftd.reference.index import MATCH_LIMIT


@dataclass(frozen=True, slots=True)
class Document:
    """A label and a time, in unix seconds, of what was indexed; a request's own text has neither."""

    tokens: Sequence[int]
    label: str = ""
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """`length` tokens of context, which the token follows `count` times, any token of the same document `total` times;
    last at `position` of the document with that label and time."""

    length: int
    count: int
    total: int
    label: str
    position: int
    time: int | None


def evidence(documents: Sequence[Document], context: Sequence[int], token: int) -> Evidence | None:
    """Of one source, whose documents are given oldest first; None where the token never stands behind the context's
    last token."""
    followed = [place for place in _places(documents) if place.token == token]
    length = max((_agreement(place, context) for place in followed), default=0)
    if length == 0:
        return None
    behind = [place for place in _places(documents) if _agreement(place, context) >= length]
    telling = [place for place in behind if place.token == token]
    last = telling[-1]
    return Evidence(length, len(telling), len(behind), last.document.label, last.position, last.document.time)


@dataclass(frozen=True, slots=True)
class _Place:
    document: Document
    position: int

    @property
    def token(self) -> int:
        return self.document.tokens[self.position]


def _places(documents: Sequence[Document]) -> Iterator[_Place]:
    for document in documents:
        for position in range(len(document.tokens)):
            yield _Place(document, position)


def _agreement(place: _Place, context: Sequence[int]) -> int:
    """Tokens at the end of the context that stand right before the place."""
    before = place.document.tokens[: place.position][::-1]
    length = 0
    for ours, theirs in zip(context[-MATCH_LIMIT:][::-1], before, strict=False):
        if ours != theirs:
            break
        length += 1
    return length
