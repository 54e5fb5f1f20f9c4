"""The draft source `ngram` and vLLM's own n-gram proposer draft the same, in both of the source's forms."""

import numpy as np
import numpy.typing as npt
import pytest
from vllm.v1.spec_decode.ngram_proposer import _find_longest_matched_ngram_and_propose_tokens

from draftd.demo.sample import SAMPLE
from draftd.replay.traces import read_trace
from draftd.sources import Batch, Ngram, propose_once

Text = npt.NDArray[np.int32]
MODEL_LENGTH = 2**20
GRAMS = [(1, 1), (1, 4), (2, 5), (3, 3), (5, 5)]


def drafted_by_vllm(text: Text, shortest: int, longest: int, nodes: int) -> list[int]:
    found = _find_longest_matched_ngram_and_propose_tokens(text, shortest, longest, MODEL_LENGTH, nodes)
    drafted: list[int] = found.tolist()
    return drafted


@pytest.mark.parametrize(("shortest", "longest"), GRAMS)
def test_random_texts(shortest: int, longest: int) -> None:
    random = np.random.default_rng(shortest * 10 + longest)
    for _ in range(20_000):
        text = random.integers(0, 1 + random.integers(1, 6), random.integers(0, 80)).astype(np.int32)
        nodes = int(random.integers(1, 9))
        drafted = propose_once(text, nodes, shortest=shortest, longest=longest).tolist()
        assert drafted == drafted_by_vllm(text, shortest, longest, nodes), text


@pytest.mark.parametrize("workload", ["code_edit_swe", "rl_game24", "specbench_mtbench"])
def test_recorded_texts_as_they_grow(workload: str) -> None:
    recorded = [it for it, _ in zip(read_trace(SAMPLE / f"{workload}.jsonl.gz"), range(6), strict=False)]
    for shortest, longest in GRAMS:
        source = Ngram(shortest=shortest, longest=longest)
        for number, request in enumerate(recorded):
            text = np.concatenate([request.prompt, request.output])
            shown = 0
            for end in range(len(request.prompt), len(text), 5):
                proposals = source.propose(row(number, shown, text[shown:end]), np.array([8], np.uint32))
                shown = end
                assert proposals.tokens.tolist() == drafted_by_vllm(text[:end], shortest, longest, 8)


def row(request: int, start: int, tokens: Text) -> Batch:
    return Batch(
        np.array([request], np.uint64), np.array([start], np.uint32), np.array([len(tokens)], np.uint32), tokens
    )
