"""What verifiers do in the property test of engines: how they open requests, and what they commit of their drafts."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from draftd import native
from draftd.reference import engine as reference
from draftd.reference.events import Share
from draftd.reference.policy import Preset
from tests.property.rows import BY_BITMAP, NO_TAIL, CommitRow, Drafted, TailRow, packed

GREATEST_ID = 2**31 - 1


ids = st.sampled_from([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5])
tokens = st.lists(ids, max_size=6)
verifiers = st.sampled_from([1, 2**64 - 1])
handles = st.integers(0, 1)
namespaces = st.sampled_from([0, 0, 0, 1])
labels = st.sampled_from(["r1", "r2", "r3"])


@st.composite
def prompts(draw: st.DrawFn) -> list[int]:
    """Mostly short; some are longer than what a step indexes at once."""
    unit = draw(st.lists(ids, min_size=1, max_size=6))
    return [*unit * draw(st.sampled_from([1, 2, 2, 3, 3, 100])), *draw(tokens)]


policies = st.fixed_dictionaries(
    {"preset": st.sampled_from([Preset.LEARNED, *Preset])},
    optional={"max_depth": st.sampled_from([1, 3]), "max_breadth": st.sampled_from([1, 2])},
)


paces = st.just({}) | st.fixed_dictionaries(
    {
        "rest_after": st.sampled_from([1, 2]),
        "rest_steps": st.sampled_from([1, 2]),
        "long_run_tokens": st.sampled_from([0, 4]),
        "long_run_factor": st.sampled_from([1.0, 1.5, 3.0]),
    }
)


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "vocabulary_size": draw(st.sampled_from([0, 0, 6, 5, 2**32 - 1])),
        "stop_ids": packed("<i4", draw(st.sampled_from([[], [], [5], [4]]))),
        "max_new_tokens": draw(st.sampled_from([None, None, None, 30, 8, 1])),
        "chain": draw(st.booleans()),
        "max_nodes": draw(st.sampled_from([0, 0, 3])),
        "policy": draw(policies),
        "label": draw(labels),
        "share": draw(st.sampled_from([Share.OUTPUTS, *Share])),
        "group": draw(st.sampled_from(["", "one", "two"])),
        "hide_history": draw(st.sampled_from([False, False, True])),
        "corpora": draw(st.sampled_from([None, None, [1], [2, 1, 1], [9], []])),
    }


def costs() -> st.SearchStrategy[reference.StepCost | None]:
    """No table, tables of one entry, flat and steep ones, and such that end before the plain step does."""
    rises = st.sampled_from([0.0, 0.0, 0.5, 100.0])
    entries = st.lists(st.tuples(st.integers(1, 12), rises), min_size=1, max_size=8)
    widths = st.sets(st.integers(0, 20), max_size=4).map(sorted)
    return st.none() | st.builds(cost_of, entries, st.sampled_from([0.0, 3.0]), st.integers(0, 9), st.just([]) | widths)


def cost_of(
    entries: list[tuple[int, float]], drafting_micros: float, other_tokens: int, widths: list[int]
) -> reference.StepCost:
    tokens = accumulate(more for more, _ in entries)
    micros = accumulate((rise for _, rise in entries[1:]), initial=1.0 + entries[0][1])
    return reference.StepCost(list(tokens), list(micros), drafting_micros, other_tokens, widths)


def native_cost(cost: reference.StepCost) -> native.StepCost:
    return native.StepCost(
        packed("<u4", cost.tokens),
        packed("<f4", cost.micros),
        cost.drafting_micros,
        cost.other_tokens,
        packed("<u2", cost.widths),
    )


@st.composite
def drafted(draw: st.DrawFn) -> list[Drafted]:
    """Of a source, for two rows: trees of what may come, with siblings that are equal, and survivals down to 0."""
    states = draw(st.booleans())
    shares = st.sampled_from([1.0, 1.0, 0.95, 0.5, 0.3, 0.01, 0.0])
    rows = []
    for _ in range(2):
        nodes = draw(st.lists(st.tuples(ids, st.integers(0, 4), shares), max_size=14))
        parents = [max(node - 1 - above, -1) for node, (_, above, _) in enumerate(nodes)]
        survival: list[float] = []
        for (_, _, share), parent in zip(nodes, parents, strict=True):
            survival.append(share * (survival[parent] if parent >= 0 else 1.0))
        rows.append(Drafted([token for token, _, _ in nodes], parents, survival if states else None))
    return rows


@dataclass(frozen=True)
class Plan:
    """A row to commit, told relative to what the request has committed."""

    handle: int
    how: str
    place: int
    tokens: list[int]
    max_nodes: int
    tail: str
    verified: int | list[int]


def plans(*how: str) -> st.SearchStrategy[list[Plan]]:
    """Rows of one step, not more than one for a request."""
    plan = st.builds(
        Plan,
        handle=handles,
        how=st.sampled_from(how),
        place=st.integers(0, 8),
        tokens=tokens,
        max_nodes=st.sampled_from([16, 16, 4, 1, 0]),
        tail=st.sampled_from(["last", "last", "last", "none", "wrong", "earlier"]),
        verified=st.sampled_from([-1, -1, 0, 2]) | st.lists(st.integers(0, 1), max_size=5),
    )
    return st.lists(plan, min_size=1, max_size=2, unique_by=lambda plan: plan.handle)


@dataclass
class Mirror:
    """What a verifier knows of its request."""

    opening: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    text: list[int] = field(default_factory=list)
    tail: TailRow | None = None
    earlier: TailRow | None = None

    def commit(self, plan: Plan) -> CommitRow:
        length = len(self.text)
        back = max(length - plan.place, 0)
        start, said = {
            "append": (length, plan.tokens),
            "follow": (length, [*drafted_path(self.tail, plan.place), *plan.tokens[:1]]),
            "step ahead": (length, [*self._left_of_earlier(plan.place), *plan.tokens[:1]]),
            "repeat": (back, self.text[back:]),
            "extend": (back, self.text[back:] + plan.tokens),
            "change": (back, plan.tokens),
            "gap": (length + 1 + plan.place, plan.tokens),
            "bad id": (length, [*plan.tokens, [-1, 5, 6, GREATEST_ID][plan.place % 4]]),
        }.get(plan.how, (length, plan.tokens))
        base = self.tail.base if self.tail else NO_TAIL
        earlier = self.earlier.base if self.earlier else NO_TAIL
        used = "earlier" if plan.how == "step ahead" else plan.tail
        return CommitRow(
            request=plan.handle,
            epoch=max(self.epoch + {"old epoch": -1, "new epoch": 1}.get(plan.how, 0), 0),
            start=start,
            tokens=said,
            max_nodes=plan.max_nodes,
            tail_base={"last": base, "none": NO_TAIL, "wrong": base ^ 1, "earlier": earlier}[used],
            verified=plan.verified if isinstance(plan.verified, int) else BY_BITMAP,
            bitmap=() if isinstance(plan.verified, int) else plan.verified,
        )

    def _left_of_earlier(self, place: int) -> list[int]:
        """Of a path of the tail before the last, what the text committed since leaves of it, if it is on that path."""
        since = self.text[self.earlier.base :] if self.earlier else []
        paths = [drafted_path(self.earlier, node) for node in range(len(self.earlier.tokens) if self.earlier else 0)]
        left = [path[len(since) :] for path in paths if path[: len(since)] == since]
        return left[place % len(left)] if left else []

    def taken(self, row: CommitRow, tail: TailRow) -> None:
        told = [*self.text[: row.start], *row.tokens]
        if self.text[: len(told)] != told:
            self.text = told
            self.earlier = self.tail
        self.tail = tail
        assert tail.base == len(self.text)


def drafted_path(tail: TailRow | None, place: int) -> list[int]:
    """The tokens from the root of a tail down to one of its nodes."""
    path: list[int] = []
    if tail and tail.tokens:
        node = place % len(tail.tokens)
        while node >= 0:
            path.insert(0, tail.tokens[node])
            node = tail.parents[node]
    return path
