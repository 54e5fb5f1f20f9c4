"""N-gram lookup drafts what vLLM's n-gram proposer drafts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.demo.sample import SAMPLE
from draftd.replay.budgets import FixedBudget
from draftd.replay.ngram import NgramDrafter, NgramLookup
from draftd.replay.result import ReplayResult
from draftd.replay.runner import replay
from draftd.replay.traces import read_trace


def scan(text: list[int], budget: int) -> list[int]:
    """The definition: the longest suffix that occurred before, and what followed its earliest occurrence."""
    for length in range(min(5, len(text)), 1, -1):
        for start in range(len(text) - length):
            if text[start : start + length] == text[-length:]:
                return text[start + length : start + length + budget]
    return []


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=12), st.integers(1, 8))
def test_a_draft_equals_scanning_the_text(pieces: list[list[int]], budget: int) -> None:
    lookup = NgramLookup([])
    text: list[int] = []
    for piece in pieces:
        lookup.extend(piece)
        text += piece
        assert lookup.draft(budget) == scan(text, budget)


@pytest.mark.parametrize(
    ("workload", "requests", "steps", "emitted", "accepted", "drafted"),
    [
        ("specbench_math", 39, 3539, 5218, 1679, 8937),
        ("specbench_mtbench", 68, 10419, 17113, 6701, 22377),
        ("rl_game24", 432, 16844, 32109, 15265, 105103),
        ("rl_code_humaneval", 420, 17251, 22746, 5495, 28864),
        ("math_gsm8k_multi", 368, 33726, 47723, 13997, 94254),
        ("math_tool_tora", 364, 34771, 62586, 27815, 93933),
    ],
)
def test_a_replay_counts_what_vllm_was_measured_at(
    workload: str, requests: int, steps: int, emitted: int, accepted: int, drafted: int
) -> None:
    """vLLM 0.32, n-grams of 2 to 5 tokens, 8 drafted: equal to the last token."""
    result = ReplayResult(workload)
    replay(read_trace(SAMPLE / f"{workload}.jsonl.gz"), NgramDrafter(), FixedBudget(8), result)
    counts = (result.requests, result.steps, result.emitted, result.accepted, result.drafted)
    assert counts == (requests, steps, emitted, accepted, drafted)
