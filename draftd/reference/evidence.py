"""What the texts know about the continuation of one node, slow and readable: the twin of cpp/src/draft/evidence.

A node's context is the request's text plus the path to the node. Every live source is asked for the context's suffixes
that occur in it. A sealed source is searched once, for the text: the nearest occurrences are its evidence, and at a
node those of them that agree with the path too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from draftd.reference.cells import LEVELS, Origin, Recency
from draftd.reference.events import Source

WIDEST = 64
"""A context with more different followers says little."""

REACH_EVERY, REACH_SAMPLES = 4, 4
LIVE_REACH = 2.0


class Level(Protocol):
    """One distinct set of occurrences of a suffix; see draftd.reference.index."""

    @property
    def length(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def distinct(self) -> int: ...
    @property
    def continuations(self) -> list[tuple[int, int, int]]: ...


class Index(Protocol):
    """What drafting asks of live text; see draftd.reference.index."""

    @property
    def end(self) -> int: ...
    def match(self, context: Sequence[int]) -> Sequence[Level]: ...


class Occurrence(Protocol):
    """A place in sealed text where a suffix of the request's text occurs; see draftd.reference.segment."""

    @property
    def length(self) -> int: ...
    @property
    def age(self) -> int: ...
    def follows(self, path: Sequence[int]) -> bool: ...
    def follower(self, depth: int) -> int | None: ...


class SegmentSet(Protocol):
    """What drafting asks of sealed text."""

    def nearest(self, context: Sequence[int]) -> Sequence[Occurrence]: ...
    def longest(self, context: Sequence[int]) -> int: ...


@dataclass(frozen=True, slots=True)
class Follower:
    token: int
    count: int
    last: int
    """The larger, the more recent."""

    recency: Recency = Recency.FAR


@dataclass(frozen=True, slots=True)
class Context:
    """What follows one suffix of a node's text in one source."""

    source: int
    length: float  # in tokens, times the trust in its source
    followers: Sequence[Follower]  # most frequent first, then most recent
    origin: Origin  # of the latest of them

    @property
    def total(self) -> int:
        return sum(follower.count for follower in self.followers)

    @property
    def distinct(self) -> int:
        return len(self.followers)

    @property
    def latest(self) -> int:
        """The token that followed last."""
        return max(self.followers, key=lambda follower: follower.last).token


def live_contexts(code: int, index: Index, prompt: int, text: Sequence[int]) -> list[Context]:
    """Of one live source, longest first; `prompt`: tokens of the request's."""
    contexts = []
    for level in index.match(text):
        if level.length > 0 and level.distinct > 0:
            followers = [
                Follower(token, count, last, recency(code, index.end - last))
                for token, count, last in level.continuations
            ]
            latest = max(follower.last for follower in followers)
            contexts.append(Context(code, float(level.length), followers, live_origin(code, latest > prompt)))
    return contexts


def recency(code: int, ago: int) -> Recency:
    """By how many tokens ago it was seen last. Generations of text told apart by it gain 0.3 % of emitted tokens."""
    if code == Source.OWN_TEXT:
        return Recency.NEAR if ago < 200 else Recency.FAR
    return Recency.NEAR if ago < 2000 else Recency.BETWEEN if ago < 20000 else Recency.FAR


def live_origin(code: int, in_output: bool) -> Origin:
    if code == Source.OWN_TEXT:
        return Origin.OUTPUT if in_output else Origin.PROMPT
    return shared_origin(code)


def shared_origin(code: int) -> Origin:
    shared = {Source.SHARED_HISTORY: Origin.HISTORY, Source.GROUP_HISTORY: Origin.GROUP, Source.CORPUS: Origin.CORPUS}
    return shared[Source(code)]


def sealed_contexts(code: int, nearest: Sequence[Occurrence], trust: float, path: Sequence[int]) -> list[Context]:
    """Of one sealed source, longest first: each with the occurrences that are as long or longer."""
    agreeing = [occurrence for occurrence in nearest if occurrence.follows(path)]
    contexts = []
    for length in sorted({occurrence.length for occurrence in agreeing}, reverse=True):
        counts: dict[int, int] = {}
        last: dict[int, int] = {}
        for occurrence in agreeing:
            token = occurrence.follower(len(path))
            if occurrence.length >= length and token is not None:
                counts[token] = counts.get(token, 0) + 1
                last[token] = max(last.get(token, 0), occurrence.age)
        followers = [Follower(token, count, last[token]) for token, count in counts.items()]
        followers.sort(key=lambda follower: (-follower.count, -follower.last))
        contexts.append(Context(code, (length + len(path)) * trust, followers, shared_origin(code)))
    return contexts


def longest(contexts: Sequence[Context]) -> list[Context]:
    """The longest with 1 to 64 followers; ties in the order of the sources."""
    telling = [context for context in contexts if 1 <= context.distinct <= WIDEST]
    return sorted(telling, key=lambda context: -context.length)[:LEVELS]


def trusts(
    sealed: Sequence[tuple[int, SegmentSet]], live: Sequence[tuple[int, Index]], text: Sequence[int]
) -> list[float]:
    """By how much the contexts of each source count as shorter: 1 but for corpora that fit the text less than others.

    A corpus's reach is its mean match length at the last four positions that are multiples of four; live text's is
    twice the length of its longest match now."""
    newest = len(text) // REACH_EVERY
    positions = [sample * REACH_EVERY for sample in range(max(1, newest - REACH_SAMPLES + 1), newest + 1)]
    reaches = [
        sum(segments.longest(text[:position]) for position in positions) / REACH_SAMPLES
        if code == Source.CORPUS
        else None
        for code, segments in sealed
    ]
    matches = [level.length for _code, index in live for level in index.match(text) if level.distinct > 0]
    furthest = max([LIVE_REACH * max(matches, default=0), *(reach for reach in reaches if reach is not None)])
    shares = [1.0 if reach is None else min(1.0, (1.0 + reach) / (1.0 + furthest)) for reach in reaches]
    return [share * share for share in shares]
