"""How a tree is drafted, slow and readable: the twin of cpp/src/draft/drafter.

The tree grows best-first by survival. Whenever a node is taken, its continuations are gathered: up to three contexts,
the longest over all sources, then the pairs of its last token, then frequent tokens (see `evidence`, `candidates`). The
model (see `model`) says how likely each is to be what follows; together they are at most certain. That times the node's
survival is the candidate's raw survival, which the model corrects when the candidate comes to be taken.

Beyond the longest context, evidence that could hardly bring a node for which the tree still has room is not looked at.
All arithmetic is in the order written here, for the same bits as in C++.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from draftd.reference import cells, presets
from draftd.reference.best_count import LEAST_SURVIVAL, StepCost, best_count
from draftd.reference.candidates import MOST_DRAFTED, Candidates, Counted
from draftd.reference.events import Reason, Source
from draftd.reference.evidence import Context, Index, SegmentSet, live_contexts, longest, sealed_contexts, trusts
from draftd.reference.model import Lesson, Model
from draftd.reference.pairs import RecentPairs
from draftd.reference.policy import Policy, Preset

MOST_CERTAIN = 0.999
"""No continuation is certain: keeps deep nodes below their ancestors."""

LIKELIEST_SHARE = 0.25
"""Where a quarter of what the contexts leave to unknown tokens would not be among the nodes for which there is room, no
more evidence is looked at."""


@dataclass(frozen=True, slots=True)
class DraftedNode:
    """A node that a draft source proposes."""

    token: int
    parent: int  # in its tree, before this one; -1: the root
    survival: np.float32 | None  # as the source states it, no higher than the parent's


@dataclass(frozen=True)
class Wish:
    """What one request of a batch wants."""

    text: Sequence[int]
    prompt: int = 0  # its tokens
    live: Sequence[tuple[int, Index]] = ()  # (source code, index), own text first
    sealed: Sequence[tuple[int, SegmentSet]] = ()
    fill: Counted | None = None
    own_pairs: RecentPairs = field(default_factory=RecentPairs)
    history_pairs: Sequence[tuple[int, RecentPairs]] = ()  # the first that knows a token speaks for all
    drafted: Sequence["DraftedNode"] = ()  # by a draft source; of Preset.LEARNED
    model: Model = field(default_factory=Model)  # of Preset.LEARNED
    stop_ids: Sequence[int] = ()
    vocabulary: int = 2**31 - 1
    max_nodes: int = 0
    chain: bool = False
    policy: Policy = field(default_factory=Policy)

    @property
    def max_breadth(self) -> int:
        return 1 if self.chain else self.policy.max_breadth

    @property
    def learned(self) -> bool:
        return self.policy.preset == Preset.LEARNED


@dataclass
class Tree:
    """Nodes in the order taken; parents[i] < i, -1 is the root. `survival` in doubles."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    survival: list[float] = field(default_factory=list)
    source: list[int] = field(default_factory=list)

    def first(self, nodes: int) -> "Tree":
        return Tree(self.tokens[:nodes], self.parents[:nodes], self.survival[:nodes], self.source[:nodes])

    def path(self, node: int) -> list[int]:
        """Tokens from the root down to `node`; empty for the root, -1."""
        return [] if node < 0 else [*self.path(self.parents[node]), self.tokens[node]]


class Growth:
    """One tree while it grows."""

    def __init__(self, wish: Wish, min_survival: float) -> None:
        self.wish = wish
        self.min_survival = max(min_survival, wish.policy.min_survival)
        self.tree = Tree()
        self.lesson = Lesson()
        self.cut_by_threshold = False
        self.cut_back = False
        self._proposed = 0
        self._heap: list[tuple[float, int, int, int, int]] = []  # (-raw survival, order, token, parent, source)
        self._best = 1.0
        if not wish.learned:
            self._propose_plan(presets.draw_up(wish, self.min_survival))
        elif wish.max_nodes > 0:
            nearest = [(code, segments.nearest(wish.text)) for code, segments in wish.sealed]
            self._sealed = list(zip(nearest, trusts(wish.sealed, wish.live, wish.text), strict=True))
            self._expand(-1, 1.0)

    def best(self) -> float | None:
        """Survival of the likeliest node that could be taken next; None when the tree is done."""
        return self._best if self._heap and len(self.tree.tokens) < self.wish.max_nodes else None

    def take(self) -> None:
        """Takes the likeliest node into the tree and proposes its continuations."""
        negative, _, token, parent, source = heapq.heappop(self._heap)
        self.tree.tokens.append(token)
        self.tree.parents.append(parent)
        self.tree.survival.append(self._best)
        self.tree.source.append(source)
        if self.wish.learned:
            self.lesson.raw.append(-negative)
            self._expand(len(self.tree.tokens) - 1, -negative)
        else:
            self._look_ahead()

    def keep(self, nodes: int) -> None:
        """Gives back all but the first nodes, and what was learnt to tell of them."""
        if nodes < len(self.tree.tokens):
            self.tree = self.tree.first(nodes)
            if self.wish.learned:
                self.lesson = self.lesson.first(nodes)
            self.cut_back = True

    def empty_because(self, left_out: Reason) -> Reason:
        """Why a tree that was asked for has no node; `left_out`: why trees have no more than they have."""
        if self.cut_back or self._heap:
            return left_out
        return Reason.BELOW_THRESHOLD if self.cut_by_threshold else Reason.NO_MATCH

    def _expand(self, node: int, raw: float) -> None:
        """Proposes the continuations of a node, by its survival before it is corrected."""
        candidates = Candidates()
        if self._may_go_on(node):
            self._gather(self.tree.path(node), raw, candidates)
        described = candidates.described()
        self.lesson.candidates.append(described)
        probabilities = [float(probability) for probability in self.wish.model.probabilities(described)]
        whole = 0.0
        for probability in probabilities:  # sum() would round once, at the end
            whole += probability
        scale = 1.0 / whole if whole > 1.0 else 1.0
        children = [
            (raw * min(probability * scale, MOST_CERTAIN), candidate.token, source)
            for candidate, probability, source in zip(described, probabilities, candidates.sources(), strict=True)
            if candidate.token < self.wish.vocabulary
        ]
        children.sort(key=lambda child: -child[0])
        for child, token, source in children[: self.wish.max_breadth]:
            self._propose(child, token, node, source)
        self._look_ahead()

    def _may_go_on(self, node: int) -> bool:
        if node < 0:
            return True
        tree, wish = self.tree, self.wish
        last = tree.tokens[node]
        room = len(tree.tokens) < wish.max_nodes and len(tree.path(node)) < wish.policy.max_depth
        return room and last not in wish.stop_ids

    def _add_drafted(self, path: list[int], candidates: Candidates) -> None:
        """What the draft source has below the node, if it has anything there."""
        here, above = -1, np.float32(1)
        for token in path:
            children = (place for place, it in enumerate(self.wish.drafted) if (it.parent, it.token) == (here, token))
            here = next(children, -2)
            if here < 0:
                return
            above = self.wish.drafted[here].survival or np.float32(0)
        below = [it for it in self.wish.drafted if it.parent == here][:MOST_DRAFTED]
        if below:
            claims = [(it.token, _claim(it.survival, before, above)) for before, it in enumerate(below)]
            stated = [it.survival for it in below if it.survival is not None]
            together = None if below[-1].survival is None else sum(stated, np.float32(0))
            candidates.add_drafted(claims, _claim(together, len(below) - 1, above), len(path) + 1)

    def _gather(self, path: list[int], raw: float, candidates: Candidates) -> None:
        wish, least = self.wish, self._least()
        self._add_drafted(path, candidates)

        def still_open() -> bool:
            """Whether what the contexts leave could still become a node of the tree."""
            return raw * candidates.unclaimed * LIKELIEST_SHARE >= least

        for number, context in enumerate(longest(self._contexts(path))):
            if number > 0 and not still_open():
                break
            candidates.add_context(context)
        if not still_open():
            return
        text = [*wish.text, *path]
        if text:
            in_histories = ((source, pairs.of(text[-1])) for source, pairs in wish.history_pairs)
            of_history = next(((source, followers) for source, followers in in_histories if followers), (0, []))
            of_request = (Source.OWN_TEXT, wish.own_pairs.of(text[-1]))
            for slot, (source, followers) in enumerate([of_request, of_history]):
                if followers:
                    candidates.add_pairs(slot, source, followers)
        if wish.fill is not None:
            candidates.add_frequent(wish.fill)

    def _least(self) -> float:
        """What is no likelier than this would not be taken, before it is corrected."""
        room = self.wish.max_nodes - len(self.tree.tokens)
        likeliest = sorted((-negative for negative, *_ in self._heap), reverse=True)[:room]
        return likeliest[-1] if len(likeliest) == room else 0.0

    def _contexts(self, path: list[int]) -> list[Context]:
        text = [*self.wish.text, *path]
        contexts = [
            context for code, index in self.wish.live for context in live_contexts(code, index, self.wish.prompt, text)
        ]
        for (code, nearest), trust in self._sealed:
            contexts += sealed_contexts(code, nearest, trust, path)
        return contexts

    def _propose_plan(self, plan: presets.Plan) -> None:
        """A preset's nodes compete for the batch's nodes by their survival, as any others."""
        self.cut_by_threshold = plan.cut_by_threshold
        for node in plan.by_survival():
            self._propose(node.survival, node.token, node.parent, node.source)
        self._look_ahead()

    def _propose(self, raw: float, token: int, parent: int, source: int) -> None:
        heapq.heappush(self._heap, (-raw, self._proposed, token, parent, source))
        self._proposed += 1

    def _look_ahead(self) -> None:
        """What comes next, and whether it may: survival never rises on the way."""
        if self._heap:
            raw = -self._heap[0][0]
            # Rounded, a corrected survival may rise by the last bit.
            self._best = min(self._best, self.wish.model.survival(raw) if self.wish.learned else raw)
            if self._best < self.min_survival:
                self.cut_by_threshold = True
                self._heap.clear()


def _claim(survival: np.float32 | None, before: int, above: np.float32) -> int:
    """`before`: siblings that come first; `above`: what the source states of the parent."""
    if survival is None:
        return cells.unstated(before)
    return cells.stated(survival / above if above > 0 else np.float32(0))


@dataclass(frozen=True)
class Drafts:
    """Of the wishes of one batch, in their order."""

    growths: list[Growth]
    left_out: Reason
    """Why trees have no more nodes than they have."""


def draft(
    wishes: Sequence[Wish], budget: int, min_survival: float = 0.0, cost: StepCost | None = None, rows: int = 0
) -> Drafts:
    """The likeliest nodes of the whole batch: at most `budget`, ties to the earlier request.

    With a cost as many of them as let the step, of that many rows, emit most tokens for each microsecond.
    """
    growths = [Growth(wish, min_survival) for wish in wishes]
    if cost is None:
        _take_likeliest(growths, budget, 0.0)
        return Drafts(growths, Reason.BUDGET_SPENT)
    if cost.widths:
        _take_widths_that_pay(growths, budget, cost, rows)
        return Drafts(growths, Reason.NOT_WORTH_IT)
    taken = _take_likeliest(growths, budget, LEAST_SURVIVAL)
    micros = [cost.with_nodes(rows, nodes + 1) for nodes in range(len(taken))]
    count = best_count(rows, cost.of(rows + cost.other_tokens), [survival for _, survival in taken], micros)
    for growth, _ in reversed(taken[count:]):
        growth.keep(len(growth.tree.tokens) - 1)
    return Drafts(growths, Reason.BUDGET_SPENT if count == budget else Reason.NOT_WORTH_IT)


def _take_likeliest(growths: list[Growth], budget: int, least: float) -> list[tuple[Growth, float]]:
    """What was taken, in its order, and the survival of each."""
    taken: list[tuple[Growth, float]] = []
    for _ in range(budget):
        best, first = None, None
        for growth in growths:
            survival = growth.best()
            if survival is not None and survival >= least and (best is None or survival > best):
                best, first = survival, growth
        if first is None or best is None:
            break
        first.take()
        taken.append((first, best))
    return taken


def _take_widths_that_pay(growths: list[Growth], budget: int, cost: StepCost, rows: int) -> None:
    """One node of every tree at a time, of those that have one."""
    survivals: list[float] = []
    while True:
        ready = [(growth, best) for growth in growths if (best := growth.best()) is not None and best >= LEAST_SURVIVAL]
        if not ready:
            break
        together = 0.0
        for growth, best in ready:  # sum() would round once, at the end
            together += best
            growth.take()
        survivals.append(together)
    fitting = [width for width in cost.widths if sum(min(growth.wish.max_nodes, width) for growth in growths) <= budget]
    within = replace(cost, widths=fitting)
    micros = [within.with_width(rows, nodes + 1) for nodes in range(len(survivals))]
    count = best_count(rows, cost.of(rows + cost.other_tokens), survivals, micros)
    for growth in growths:
        growth.keep(count)
