"""Every preset and every policy: the core makes the trees of its twin, and they keep what the policy says."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftd import native
from draftd.reference import engine as reference
from draftd.reference.events import Share
from draftd.reference.policy import NO_LIMIT, Preset
from tests.property.rows import CommitRow, TailRow, packed, step
from tests.segments import sealed

AMPLE = 1 << 30
NODES = 20

Text = list[int]

few_ids = st.sampled_from([0, 0, 0, 1, 1, 2, 3])


@st.composite
def texts(draw: st.DrawFn) -> Text:
    """Short ones, and ones whose matches are longer than the longest that is counted."""
    unit = draw(st.lists(few_ids, min_size=1, max_size=8))
    return [*unit * draw(st.sampled_from([1, 2, 3, 30])), *draw(st.lists(few_ids, max_size=12))]


@dataclass(frozen=True)
class Asked:
    """One request of the batch."""

    prompt: Text
    policy: dict[str, Any]
    chain: bool
    vocabulary: int
    stop_ids: Text
    reads_corpora: bool


policies = st.fixed_dictionaries(
    {"preset": st.sampled_from([*Preset])},
    optional={
        "max_depth": st.integers(1, 4),
        "max_breadth": st.integers(1, 3),
        "min_survival": st.sampled_from([0.0, 0.05, 0.3, 0.5, 1.0]),
        "max_spec_factor": st.sampled_from([0.0, 0.5, 1.1, 4.0, 1e9]),
        "min_token_prob": st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    },
)
requests = st.builds(
    Asked,
    prompt=texts(),
    policy=policies,
    chain=st.booleans(),
    vocabulary=st.sampled_from([0, 0, 3]),
    stop_ids=st.sampled_from([[], [], [2]]),
    reads_corpora=st.booleans(),
)


class Both:
    """The native engine and its twin, told the same."""

    def __init__(self, history: list[Text], segments: list[list[Text]]) -> None:
        self.native = native.Engine(600.0, AMPLE, AMPLE, NODES, indexing_thread=False)
        self.twin = reference.Engine(600.0, AMPLE, AMPLE, NODES, indexing_thread=False)
        for engine in (self.native, self.twin):
            engine.create_namespace()
        if segments:
            self.native.publish_corpus(0, 1, [sealed(documents) for documents in segments])
            self.twin.publish_corpus(0, 1, [reference.Segment(documents) for documents in segments])
        for number, text in enumerate(history, 100):
            self.open(number, Asked(text, {}, False, 0, [], False), Share.ALL)
            for engine in (self.native, self.twin):
                engine.close(1, packed("<u4", [number]), packed("<u4", [1]), 0.0, 0)
                engine.index_slice(AMPLE)

    def open(self, request: int, asked: Asked, share: Share = Share.NOTHING) -> None:
        said: dict[str, Any] = {
            "verifier": 1,
            "request": request,
            "epoch": 1,
            "namespace": 0,
            "label": "",
            "vocabulary_size": asked.vocabulary,
            "prompt": packed("<i4", [token for token in asked.prompt if token < (asked.vocabulary or NO_LIMIT)]),
            "output": b"",
            "stop_ids": packed("<i4", asked.stop_ids),
            "max_new_tokens": None,
            "chain": asked.chain,
            "max_nodes": 0,
            "share": share,
            "group": "",
            "hide_history": False,
            "corpora": None if asked.reads_corpora else [],
            "now": 0.0,
        }
        self.native.open(**said, policy=native.DraftPolicy(**asked.policy))
        self.twin.open(**said, policy=reference.Policy(**asked.policy))
        for engine in (self.native, self.twin):
            engine.index_slice(AMPLE)

    def draft(self, asked: list[Asked], budget: int, min_survival: float) -> list[TailRow]:
        for request, it in enumerate(asked):
            self.open(request, it)
        rows = [
            CommitRow(request, 1, sum(token < (it.vocabulary or NO_LIMIT) for token in it.prompt), max_nodes=NODES)
            for request, it in enumerate(asked)
        ]
        said: dict[str, Any] = {"now": 0.0, "budget": budget, "min_survival": min_survival}
        tails = step(self.native, native.StepColumns, 1, rows, **said)
        assert tails == step(self.twin, reference.StepColumns, 1, rows, **said)
        return tails


def check(tail: TailRow, asked: Asked, min_survival: float) -> None:
    policy = asked.policy
    depths = {-1: 0}
    least = max(min_survival, policy.get("min_survival", 0.0))
    if policy["preset"] == Preset.SUFFIX_DECODING:
        least = max(least, policy.get("min_token_prob", 0.1))
    for node, (token, parent) in enumerate(zip(tail.tokens, tail.parents, strict=True)):
        assert parent < node
        depths[node] = depths[parent] + 1
        assert depths[node] <= policy.get("max_depth", NO_LIMIT)
        assert token < (asked.vocabulary or NO_LIMIT)
        assert parent < 0 or tail.tokens[parent] not in asked.stop_ids
        assert tail.survival[node] <= tail.survival[max(node - 1, 0)], "nodes are in the order of their survival"
        assert tail.survival[node] >= least * (1 - 1e-6)
    widest = 1 if asked.chain else policy.get("max_breadth", NO_LIMIT)
    assert all(children <= widest for children in Counter(tail.parents).values())
    assert len({*zip(tail.parents, tail.tokens, strict=True)}) == len(tail.tokens), "siblings differ"


@settings(max_examples=2 * settings().max_examples)
@given(
    history=st.lists(texts(), max_size=3),
    segments=st.lists(st.lists(texts(), min_size=1, max_size=2), max_size=2),
    asked=st.lists(requests, min_size=1, max_size=3),
    budget=st.sampled_from([0, 0, 7]),
    min_survival=st.sampled_from([0.0, 0.0, 0.2]),
)
def test_the_core_makes_the_trees_of_its_twin_and_they_keep_the_policy(
    history: list[Text], segments: list[list[Text]], asked: list[Asked], budget: int, min_survival: float
) -> None:
    tails = Both(history, segments).draft(asked, budget, min_survival)
    for tail, it in zip(tails, asked, strict=True):
        check(tail, it, min_survival)


@pytest.mark.parametrize("preset", [Preset.SUFFIX_DECODING, Preset.NGRAM_BFS, Preset.NGRAM_PROB])
def test_a_context_with_very_many_followers_says_nothing(preset: Preset) -> None:
    followers = [Asked([1], {"preset": preset, "min_token_prob": 0.0}, False, 0, [], False)]
    many = [token for follower in range(2, 2 + 1025) for token in (1, follower)]
    assert Both([many[:-2]], []).draft(followers, 0, 0.0)[0].tokens
    assert not Both([many], []).draft(followers, 0, 0.0)[0].tokens
