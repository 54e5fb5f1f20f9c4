"""A draft source is replayed like a drafter; n-gram lookup drafts what vLLM's n-gram proposer drafts."""

from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from draftd.demo.sample import SAMPLE
from draftd.replay.budgets import FixedBudget
from draftd.replay.options import ReplayOptions
from draftd.replay.result import ReplayResult
from draftd.replay.runner import ReplayError, replay
from draftd.replay.source_drafter import SourceDrafter, drafter_named
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.sources import Batch, GuardedSource, Lane, Nature, Need, Outcome, Proposals, Shape


class Recording:
    """A chain of one token, of which it states no survival; keeps what it is told."""

    nature = Nature(
        needs=frozenset({Need.TOKENS}),
        shape=Shape.CHAIN,
        states_survival=False,
        lane=Lane.NATIVE,
        call_micros=0.0,
        row_micros=0.0,
    )
    batches: ClassVar[list[Batch]] = []
    outcomes: ClassVar[list[Outcome]] = []

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        self.batches.append(batch)
        ends = np.arange(1, len(budget) + 1, dtype=np.uint32)
        return Proposals(ends, np.full(len(budget), 7, np.int32))

    def observe(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def close(self) -> None: ...

    def memory(self) -> int:
        return 0


def test_a_source_is_shown_what_is_new_and_told_what_became_of_its_drafts() -> None:
    Recording.batches.clear()
    Recording.outcomes.clear()
    recorded = RecordedRequest("r", np.array([1, 2, 3], np.int32), np.array([4, 7, 5, 6], np.int32), "r")
    result = ReplayResult("w")
    with SourceDrafter(GuardedSource("recording", Recording())) as drafter:
        replay([recorded], drafter, FixedBudget(1), result)
    shown = [(batch.start.tolist(), batch.tokens.tolist()) for batch in Recording.batches]
    assert shown == [([0], [1, 2, 3, 4]), ([4], [7, 5])]
    told = [(it.verified.tolist(), it.accepted.tolist(), it.ended.tolist()) for it in Recording.outcomes]
    assert told == [([1], [1], []), ([1], [0], [0])]
    assert (result.steps, result.accepted) == (2, 1)


def test_a_source_that_fails_ends_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Proposals:
        raise RuntimeError("no")

    monkeypatch.setattr(Recording, "propose", fail)
    recorded = RecordedRequest("r", np.array([1], np.int32), np.array([4, 7], np.int32), "r")
    with (
        SourceDrafter(GuardedSource("recording", Recording())) as drafter,
        pytest.raises(ReplayError, match="draft source 'recording' gave no answer: failed"),
    ):
        replay([recorded], drafter, FixedBudget(1), ReplayResult("w"))


@pytest.mark.parametrize(
    ("workload", "requests", "steps", "emitted", "accepted", "drafted"),
    [
        ("specbench_math", 39, 3539, 5218, 1679, 8937),
        ("specbench_mtbench", 68, 10419, 17113, 6701, 22377),
        ("rl_game24", 432, 16844, 32109, 15265, 105103),
        ("rl_code_humaneval", 420, 17251, 22746, 5495, 28864),
    ],
)
def test_a_replay_counts_what_vllm_was_measured_at(
    workload: str, requests: int, steps: int, emitted: int, accepted: int, drafted: int
) -> None:
    """vLLM 0.32, n-grams of 2 to 5 tokens, 8 drafted: equal to the last token."""
    result = ReplayResult(workload)
    with drafter_named("ngram") as drafter:
        replay(read_trace(SAMPLE / f"{workload}.jsonl.gz"), drafter, FixedBudget(8), result)
    counts = (result.requests, result.steps, result.emitted, result.accepted, result.drafted)
    assert counts == (requests, steps, emitted, accepted, drafted)


def test_either_a_preset_drafts_or_a_source() -> None:
    with pytest.raises(ReplayError, match="preset learned and source ngram are both given"):
        ReplayOptions(preset="learned", source="ngram")
