"""The drafting recipe, slow and readable: the twin of cpp/src/draft.

A node's context is the request's text plus the path to the node. Every live
source is asked for the contexts' suffixes that occur in it. A sealed source is
searched once, for the text: the nearest occurrences are its evidence, and at a
node those of them that agree with the path too. The four longest contexts over
all sources, with 1 to 64 different followers, are looked at. They are blended by
prediction by partial matching (PPM-C, Moffat 1990) with two corrections: a
context of length L is trusted with

    total / (total + distinct / (1 + L / 16)) * L / (L + 1)

and passes the rest on to the next shorter one; what is left at the end is
shared among the most frequent tokens of the history. Beyond the longest
context, evidence that can't lift a candidate to the survival of the last node
worth taking, about 1 / (3 * max_nodes), is not looked at. The tree grows best-first
by survival. All arithmetic is in IEEE doubles and in the order written here, so
that the C++ gives the same bits.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from draftd.reference import presets
from draftd.reference.policy import Policy, Preset

LEVELS = 4
FOLLOWERS = 12
WIDEST = 64
MOST_CERTAIN = 0.999
REACH_EVERY, REACH_SAMPLES = 4, 4
CORPUS = 3  # source codes
FILL = 4


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


class Counted(Protocol):
    """Text whose frequent tokens fill nodes."""

    @property
    def tokens(self) -> int: ...
    @property
    def distinct_tokens(self) -> int: ...
    def frequent_tokens(self) -> list[tuple[int, int]]: ...


@dataclass(frozen=True)
class Wish:
    """What one request of a batch wants."""

    text: Sequence[int]
    live: Sequence[tuple[int, Index]] = ()  # (source code, index), own text first
    sealed: Sequence[tuple[int, SegmentSet]] = ()
    fill: Counted | None = None
    stop_ids: Sequence[int] = ()
    vocabulary: int = 2**31 - 1
    max_nodes: int = 0
    chain: bool = False
    policy: Policy = field(default_factory=Policy)

    @property
    def max_breadth(self) -> int:
        return 1 if self.chain else self.policy.max_breadth


@dataclass
class Tree:
    """Nodes in the order taken; parents[i] < i, -1 is the root. `survival` in doubles."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    survival: list[float] = field(default_factory=list)
    source: list[int] = field(default_factory=list)

    def path(self, node: int) -> list[int]:
        """Tokens from the root down to `node`; empty for the root, -1."""
        return [] if node < 0 else [*self.path(self.parents[node]), self.tokens[node]]


def trusts(sealed: Sequence[tuple[int, SegmentSet]], text: Sequence[int]) -> list[float]:
    """By how much the contexts of each source count as shorter: 1 but for corpora that fit the text less than others.

    A corpus's reach is its mean match length at the last four positions that are multiples of four."""
    newest = len(text) // REACH_EVERY
    positions = [sample * REACH_EVERY for sample in range(max(1, newest - REACH_SAMPLES + 1), newest + 1)]
    reaches = [
        sum(segments.longest(text[:position]) for position in positions) / REACH_SAMPLES if code == CORPUS else None
        for code, segments in sealed
    ]
    furthest = max((reach for reach in reaches if reach is not None), default=0.0)
    shares = [1.0 if reach is None else (1.0 + reach) / (1.0 + furthest) for reach in reaches]
    return [share * share for share in shares]


@dataclass(frozen=True)
class Context:
    """What follows one suffix of a node's text in one source."""

    source: int
    length: float  # in tokens, times the trust in its source
    total: int
    continuations: Sequence[tuple[int, int, int]]  # (token, count, recency): most frequent first, then most recent

    @property
    def distinct(self) -> int:
        return len(self.continuations)


def live_contexts(code: int, index: Index, text: Sequence[int]) -> list[Context]:
    """Of one live source, longest first."""
    return [
        Context(code, float(level.length), level.total, level.continuations)
        for level in index.match(text)
        if level.length > 0
    ]


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
        continuations = [(token, count, last[token]) for token, count in counts.items()]
        continuations.sort(key=lambda follower: (-follower[1], -follower[2]))
        contexts.append(Context(code, (length + len(path)) * trust, sum(counts.values()), continuations))
    return contexts


def gather(contexts: Sequence[Context]) -> list[Context]:
    """The longest with 1 to 64 followers; ties in the order of the sources."""
    telling = [context for context in contexts if 1 <= context.distinct <= WIDEST]
    return sorted(telling, key=lambda context: -context.length)[:LEVELS]


def score(
    evidence: Sequence[Context], fill: Counted | None, worthwhile: float, survival: float
) -> dict[int, tuple[float, int]]:
    """Candidates of a node of that survival, in the order first seen: token -> (probability, source code)."""
    candidates: dict[int, tuple[float, int]] = {}

    def promise(token: int, source: int, probability: float) -> None:
        before, first_source = candidates.get(token, (0.0, source))
        candidates[token] = (before + probability, first_source)

    unclaimed = 1.0
    for number, context in enumerate(evidence):
        if number > 0 and survival * unclaimed < worthwhile:
            break
        length, total = context.length, float(context.total)
        escape = context.distinct / (1.0 + length / 16.0)
        confidence = total / (total + escape) * (length / (length + 1.0))
        weight = unclaimed * confidence / total
        for token, count, _last in context.continuations[:FOLLOWERS]:
            promise(token, context.source, weight * count)
        unclaimed *= 1.0 - confidence
    if fill is not None and fill.tokens > 0 and survival * unclaimed >= worthwhile:
        weight = unclaimed / float(fill.tokens + fill.distinct_tokens)
        for token, count in fill.frequent_tokens():
            promise(token, FILL, weight * count)
    return candidates


class Growth:
    """One tree while it grows."""

    def __init__(self, wish: Wish, min_survival: float) -> None:
        self.wish = wish
        self.min_survival = max(min_survival, wish.policy.min_survival)
        self.tree = Tree()
        self.cut_by_threshold = False
        self._proposed = 0
        self._heap: list[tuple[float, int, int, int, int]] = []  # (-survival, order, token, parent, source)
        if wish.policy.preset != Preset.LEARNED:
            self._propose_plan(presets.draw_up(wish, self.min_survival))
        elif wish.max_nodes > 0:
            nearest = [(code, segments.nearest(wish.text)) for code, segments in wish.sealed]
            self._sealed = list(zip(nearest, trusts(wish.sealed, wish.text), strict=True))
            self._expand(-1, 1.0)

    def best(self) -> float | None:
        """Survival of the likeliest node that could be taken next; None when the tree is done."""
        return -self._heap[0][0] if self._heap and len(self.tree.tokens) < self.wish.max_nodes else None

    def take(self) -> None:
        """Takes the likeliest node into the tree and proposes its continuations."""
        negative, _, token, parent, source = heapq.heappop(self._heap)
        self.tree.tokens.append(token)
        self.tree.parents.append(parent)
        self.tree.survival.append(-negative)
        self.tree.source.append(source)
        if self.wish.policy.preset == Preset.LEARNED and token not in self.wish.stop_ids:
            self._expand(len(self.tree.tokens) - 1, -negative)

    def _expand(self, node: int, survival: float) -> None:
        wish, path = self.wish, self.tree.path(node)
        if len(path) == wish.policy.max_depth:
            return
        text = [*wish.text, *path]
        contexts = [context for code, index in wish.live for context in live_contexts(code, index, text)]
        for (code, nearest), trust in self._sealed:
            contexts += sealed_contexts(code, nearest, trust, path)
        evidence = gather(contexts)
        worthwhile = 1.0 / (3.0 * wish.max_nodes)
        candidates = score(evidence, wish.fill, worthwhile, survival)
        self._propose(
            node,
            [
                (survival * min(probability, MOST_CERTAIN), token, source)
                for token, (probability, source) in candidates.items()
                if token < wish.vocabulary
            ],
        )

    def _propose_plan(self, plan: presets.Plan) -> None:
        """A preset's nodes compete for the batch's nodes by their survival, as any others."""
        self.cut_by_threshold = plan.cut_by_threshold
        for order, node in enumerate(plan.by_survival()):
            heapq.heappush(self._heap, (-node.survival, order, node.token, node.parent, node.source))

    def _propose(self, parent: int, children: list[tuple[float, int, int]]) -> None:
        """Children as (survival, token, source), in the order first seen: the likeliest may be taken later."""
        surviving = [child for child in children if child[0] >= self.min_survival]
        self.cut_by_threshold |= len(surviving) < len(children)
        surviving.sort(key=lambda child: -child[0])
        for survival, token, source in surviving[: self.wish.max_breadth]:
            heapq.heappush(self._heap, (-survival, self._proposed, token, parent, source))
            self._proposed += 1


def draft(wishes: Sequence[Wish], budget: int, min_survival: float = 0.0) -> list[Growth]:
    """The likeliest nodes of the whole batch: at most `budget`, ties to the earlier request."""
    growths = [Growth(wish, min_survival) for wish in wishes]
    for _ in range(budget):
        best, first = None, None
        for growth in growths:
            survival = growth.best()
            if survival is not None and (best is None or survival > best):
                best, first = survival, growth
        if first is None:
            break
        first.take()
    return growths
