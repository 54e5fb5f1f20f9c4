"""The named presets, slow and readable: the twin of cpp/src/draft/presets.

Each draws up the whole tree of one request from what followed the suffixes of its text. Several sources are read as one
text: counts add up, and of two tokens that were seen equally often the more recent is first. Sources are in the order
of their recency, own text first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftd.reference.policy import Preset

if TYPE_CHECKING:
    from draftd.reference.draft import Wish
    from draftd.reference.evidence import Occurrence

ROOT = -1
OWN_TEXT = 0  # source code
MATCH_LIMIT = 64
WIDEST = 1024

ROUNDING = 1e-6  # so that a factor that no double is gives the number that is meant

WINDOW = 12  # tokens of the longest match of ngram_bfs and ngram_prob
LONGEST = 18  # tokens of a match and what is drafted after it
WIDEST_BREADTH, NARROWEST = 10.0, 1.0
NARROWING = (WIDEST_BREADTH - NARROWEST) / WINDOW
MOST_FREQUENT = 10


@dataclass
class Node:
    parent: int  # number of a node, or ROOT
    token: int
    survival: float
    source: int


@dataclass
class Plan:
    """A tree that keeps every limit of the wish."""

    wish: Wish
    most: int
    min_survival: float
    nodes: list[Node] = field(default_factory=list)
    score: float = 0.0
    cut_by_threshold: bool = False

    @property
    def full(self) -> bool:
        return len(self.nodes) == self.most

    def child(self, parent: int, token: int, survival: float, source: int) -> int | None:
        """The child of `parent` with that token, new if there was none; None where a limit forbids it."""
        children = [number for number, node in enumerate(self.nodes) if node.parent == parent]
        for number in children:
            if self.nodes[number].token == token:
                return number
        if self.full or token >= self.wish.vocabulary or len(children) == self.wish.max_breadth:
            return None
        if self._depth(parent) == self.wish.policy.max_depth:
            return None
        if parent != ROOT:
            if self.nodes[parent].token in self.wish.stop_ids:
                return None
            survival = min(survival, self.nodes[parent].survival)
        if survival < self.min_survival:
            self.cut_by_threshold = True
            return None
        self.nodes.append(Node(parent, token, survival, source))
        self.score += survival
        return len(self.nodes) - 1

    def _depth(self, node: int) -> int:
        return 0 if node == ROOT else 1 + self._depth(self.nodes[node].parent)

    def by_survival(self) -> list[Node]:
        """The nodes, likeliest first, parents first, ties in the order added; parents are numbers in this list."""
        order = sorted(range(len(self.nodes)), key=lambda number: -self.nodes[number].survival)
        place = {number: place for place, number in enumerate(order)} | {ROOT: ROOT}
        nodes = [self.nodes[number] for number in order]
        return [Node(place[node.parent], node.token, node.survival, node.source) for node in nodes]


@dataclass(frozen=True)
class Follower:
    """A token that followed a string."""

    token: int
    count: int  # over all sources
    order: int  # of the first source that has it
    last: int  # there; the larger, the more recent
    source: int  # its code


def most_recent(follower: Follower) -> tuple[int, int]:
    return follower.order, -follower.last


def most_frequent(follower: Follower) -> tuple[int, int, int]:
    return -follower.count, follower.order, -follower.last


class Places:
    """Some sources of a wish, read as one text."""

    def __init__(self, wish: Wish, reads: Callable[[int], bool]) -> None:
        self._wish = wish
        self._live = [(order, code, index) for order, (code, index) in enumerate(wish.live) if reads(code)]
        self._sealed: list[tuple[int, int, Sequence[Occurrence]]] = [
            (order, code, segments.nearest(wish.text))
            for order, (code, segments) in enumerate(wish.sealed, len(wish.live))
            if reads(code)
        ]

    def suffixes(self) -> Iterator[int]:
        """Lengths of the text's suffixes that something followed, longest first."""
        longest = min(len(self._wish.text), MATCH_LIMIT)
        return (length for length in range(longest, 0, -1) if self.followers(length, []))

    def followers(self, length: int, path: Sequence[int]) -> list[Follower]:
        """What followed the last `length` tokens of the text and then `path`, in no order."""
        string = [*self._wish.text[len(self._wish.text) - length :], *path][-MATCH_LIMIT:]
        merged: dict[int, Follower] = {}
        for order, code, index in self._live:
            level = index.match(string)[0]
            if level.length == len(string) and level.distinct <= WIDEST:
                for token, count, last in level.continuations:
                    _add(merged, Follower(token, count, order, last, code))
        for order, code, nearest in self._sealed:
            for occurrence in nearest:
                if occurrence.length >= length and occurrence.follows(path):
                    token_or_end = occurrence.follower(len(path))
                    if token_or_end is not None:
                        _add(merged, Follower(token_or_end, 1, order, occurrence.age, code))
        return list(merged.values())


def own_text(source: int) -> bool:
    return source == OWN_TEXT


def other_sources(source: int) -> bool:
    return source != OWN_TEXT


def all_sources(source: int) -> bool:
    del source
    return True


def _add(merged: dict[int, Follower], more: Follower) -> None:
    known = merged.get(more.token)
    if known is not None:
        last = max(known.last, more.last) if known.order == more.order else known.last
        more = Follower(known.token, known.count + more.count, known.order, last, known.source)
    merged[more.token] = more


def draw_up(wish: Wish, min_survival: float) -> Plan:
    """The tree of a wish whose preset is not LEARNED."""
    match wish.policy.preset:
        case Preset.SUFFIX_DECODING:
            return suffix_decoding(wish, min_survival)
        case Preset.NGRAM_BFS:
            return ngram_bfs(wish, min_survival)
        case _:
            return ngram_prob(wish, min_survival)


def suffix_decoding(wish: Wish, min_survival: float) -> Plan:
    """Each suffix of the text that occurs, in the own text or in all else, gives a plan of as many nodes as the match
    is long; the plan with the most tokens to expect wins."""
    least = max(min_survival, wish.policy.min_token_prob)
    best = Plan(wish, wish.max_nodes, least)
    cut = False
    for places in (Places(wish, own_text), Places(wish, other_sources)):
        for length in places.suffixes():
            most = min(wish.max_nodes, int(length * wish.policy.max_spec_factor + ROUNDING))
            if most <= best.score:
                break  # even if all of it were certain
            rival = Plan(wish, most, least)
            grow(rival, places, length, occurrences=True)
            cut |= rival.cut_by_threshold
            if rival.score > best.score:
                best = rival
    best.cut_by_threshold = cut
    return best


def ngram_bfs(wish: Wish, min_survival: float) -> Plan:
    """After each suffix of the text that occurs, the longest first, what followed it most recently, breadth first; the
    longer the string, the narrower. All of it in one tree, until the nodes are used up."""
    plan, places = Plan(wish, wish.max_nodes, min_survival), Places(wish, all_sources)
    for match in places.suffixes():
        if match > WINDOW:
            continue
        queue: list[tuple[int, list[int], float, float]] = [(ROOT, [], WIDEST_BREADTH - match * NARROWING, 1.0)]
        while queue and not plan.full:
            parent, path, breadth, reached = queue.pop(0)
            followers = sorted(places.followers(match, path), key=most_recent)
            total = float(sum(follower.count for follower in followers))
            for follower in followers[: int(max(breadth, NARROWEST))]:
                probability = reached * (follower.count / total)
                node = plan.child(parent, follower.token, probability, follower.source)
                if node is not None and match + len(path) + 1 < LONGEST:
                    queue.append((node, [*path, follower.token], breadth - NARROWING, probability))
    return plan


def ngram_prob(wish: Wish, min_survival: float) -> Plan:
    """After each suffix of the text that occurs, the longest first, the likeliest strings by the shares of what
    followed, until there are none or the nodes are used up."""
    plan, places = Plan(wish, wish.max_nodes, min_survival), Places(wish, all_sources)
    for match in places.suffixes():
        if match <= WINDOW:
            grow(plan, places, match, occurrences=False)
    return plan


def grow(plan: Plan, places: Places, match: int, *, occurrences: bool) -> None:
    """Adds what follows the suffix of `match` tokens, the likeliest string first: its tokens' shares multiplied.

    With `occurrences` a token's share is of the occurrences of the string before it, where the end of the text is one
    too; without, of the counts of the ten most frequent followers, and the string is at most LONGEST tokens long."""
    heap: list[tuple[float, int, int, list[int], Follower]] = []

    def propose(node: int, path: list[int], count: int, reached: float) -> None:
        followers = sorted(places.followers(match, path), key=most_frequent)
        if not occurrences:
            followers = followers[:MOST_FREQUENT]
        whole = sum(follower.count for follower in followers)
        if occurrences:
            whole = max(whole, count) if path else whole + 1
        for follower in followers[: plan.most]:
            probability = reached * (follower.count / float(whole))
            heapq.heappush(heap, (-probability, next(numbers), node, path, follower))

    numbers = iter(range(1 << 62))
    propose(ROOT, [], 0, 1.0)
    while heap and not plan.full:
        negative, _, parent, path, follower = heapq.heappop(heap)
        node = plan.child(parent, follower.token, -negative, follower.source)
        if node is not None and (occurrences or match + len(path) + 1 < LONGEST):
            propose(node, [*path, follower.token], follower.count, -negative)
