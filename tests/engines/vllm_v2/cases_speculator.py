"""Drafts under ngram_gpu, over vLLM's own states and by its own kernels, are those of the rule."""

import random
from itertools import islice

import torch
from vllm.config import VllmConfig
from vllm.v1.worker.gpu.spec_decode.ngram.speculator import NgramGPUSpeculator

from bench.text import trace_documents
from draftd.adapters.vllm_v2_speculator import DraftdSpeculator
from draftd.demo.sample import SAMPLE
from draftd.kernels.texts import Rule
from tests.engines.kernels.oracle import Row, drafted, padding
from tests.engines.vllm_v2.runner import LONGEST, MOST, REQUESTS, Runner

RULE = Rule(2, 6, MOST, pad_with_last=True)


def expected(text: list[int]) -> list[int]:
    row = Row(text)
    draft = drafted(row, RULE)
    return draft + [padding(row, RULE)] * (MOST - len(draft))


def test_the_runner_has_draftds_speculator_over_its_own_matrix(runner: Runner) -> None:
    assert isinstance(runner.speculator, DraftdSpeculator)
    runner.add("a", [1, 2, 3, 1, 2])
    assert runner.step({"a": [3]}) == [[1, 2, 3, 1, 2]]


def test_recorded_requests_that_come_grow_and_go(runner: Runner) -> None:
    chance = random.Random(0)
    texts = [document[:LONGEST].tolist() for document in islice(trace_documents(SAMPLE), 12)]
    left: dict[str, list[int]] = {}
    rows = padded = 0
    for step in range(60):
        if len(left) < REQUESTS and step % 4 == 0:
            text = chance.choice(texts)
            runner.add(f"r{step}", text[:100])
            left[f"r{step}"] = text[100:]
        batch = chance.sample(sorted(left), chance.randrange(1, len(left) + 1))
        # The first tokens of a request come with its first step; later ones may be absent: a prompt in pieces.
        emitted = {name: left[name][: chance.randrange(MOST + 2)] for name in batch}
        drafts = runner.step(emitted)
        assert drafts == [expected(runner.texts[name]) for name in batch]
        rows += len(drafts)
        padded += sum(len(set(draft)) == 1 for draft in drafts)
        for name in batch:
            del left[name][: len(emitted[name])]
            if len(left[name]) <= MOST + 1 or chance.random() < 0.05:
                runner.remove(name)
                del left[name]
    assert rows - padded > 20, "most are no padding"


def test_slots_without_a_draft_hold_the_last_sampled_id(runner: Runner) -> None:
    runner.add("a", [1, 2, 3])
    runner.add("b", [5])
    assert runner.step({"b": [6], "a": [7, 8]}) == [[6] * MOST, [8] * MOST]


def test_a_matrix_that_is_full_is_drafted_from(runner: Runner) -> None:
    runner.add("a", [1, 2, 3, 4] * (LONGEST // 4 - 1))
    assert runner.step({"a": [1, 2, 3, 4]}) == [[1, 2, 3, 4, 1]]


def test_arguments_that_are_not_known_are_accepted(runner: Runner) -> None:
    runner.add("a", [1, 2, 1])
    assert runner.step({"a": [2]}, of_a_later_version=object()) == [[1, 2, 1, 2, 1]]


def test_a_dummy_run_gets_tokens_of_the_shape_and_leaves_the_next_step_alone(runner: Runner) -> None:
    runner.add("a", [1, 2, 1])
    assert runner.step({"a": [2]}, dummy_run=True) == [[0] * MOST]
    assert runner.step({"a": []}) == [[1, 2, 1, 2, 1]]


def test_the_drafts_may_be_written_to(runner: Runner) -> None:
    """As the runner does where it schedules fewer tokens than are proposed."""
    propose = runner.speculator.propose

    def cut(*arguments: object, **named: object) -> torch.Tensor:
        drafts = propose(*arguments, **named)
        drafts[:, 2:] = -1
        return drafts

    runner.add("a", [1, 2, 1])
    runner.speculator.propose = cut
    assert runner.step({"a": [2]}) == [[1, 2, -1, -1, -1]]
    runner.speculator.propose = propose
    assert runner.step({"a": [1]}) == [[2, 1, 2, 1, 2]]


def test_what_vllm_reads_of_its_own_speculator_is_there(runner: Runner, config: VllmConfig) -> None:
    theirs = NgramGPUSpeculator(config, torch.device("cpu"), runner.runner.req_states)
    inside = {
        "req_states",
        "min_n",
        "max_n",
        "max_num_reqs",
        "max_model_len",
        "block_l",
        "n_blocks",
        "scratch",
        "drafts",
    }
    assert {name for name in dir(theirs) if not name.startswith("_")} - inside <= set(dir(runner.speculator))
