"""The example of a source that reads hidden states: installed as a package, trained, and asked by a server process for
the requests of the reference verifier."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ml_dtypes import bfloat16
from transformers import AutoModelForCausalLM, AutoTokenizer

from bench.target_outputs import chat_prompt, greedy_outputs, questions, write_recording
from draftd.client import Client
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.sources import REGISTRY, Batch, HiddenStates, Need, SourceError
from draftd.verify.drafts import ClientDrafts
from draftd.verify.rules import Greedy
from draftd.verify.verifier import Step, Verifier
from tests.contract.source_promises import STATE_WIDTH, Make, SourcePromises
from tests.example_package import ROOT, installed
from tests.faults.process import ServerProcess

OFFERED = frozenset({Need.TOKENS, Need.HIDDEN_STATES})
QUESTIONS, TOKENS = 8, 48
TRAINING_STEPS = 80
NODES = 4
PATIENT = 30.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed("hidden_state_head", tmp_path_factory.mktemp("plugin"))


# A head of random weights


@pytest.fixture
def random_head(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For the four tokens of the promises' texts."""
    monkeypatch.syspath_prepend(str(site))
    random = np.random.default_rng(1)
    shapes = {
        "embeddings": (4, STATE_WIDTH),
        "inner": (2 * STATE_WIDTH, 2 * STATE_WIDTH),
        "outer": (2 * STATE_WIDTH, STATE_WIDTH),
    }
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    np.savez(tmp_path / "head.npz", ids=np.arange(4, dtype=np.int32), **weights)
    return tmp_path / "head.npz"


class TestPromises(SourcePromises):
    @pytest.fixture
    def make(self, random_head: Path) -> Make:
        return partial(REGISTRY.make, "state_head", {"checkpoint": random_head}, OFFERED)


def test_who_has_no_states_to_offer_is_told_what_it_needs(random_head: Path) -> None:
    with pytest.raises(SourceError, match="'state_head' needs hidden states, which it can't have here"):
        REGISTRY.make("state_head", {"checkpoint": random_head}, frozenset({Need.TOKENS}))


def test_without_the_state_of_the_token_before_the_last_nothing_is_drafted(random_head: Path) -> None:
    source = REGISTRY.make("state_head", {"checkpoint": random_head}, OFFERED)
    assert [len(nodes_for(source, [1] * 5, states)) for states in (0, 3, 4)] == [0, 0, NODES]
    assert len(nodes_for(source, [1] * 5, 0)) == NODES  # it has that state
    assert len(nodes_for(source, [1] * 4, 0)) == 0  # a token was taken back


def test_a_state_of_text_that_was_taken_back_is_forgotten(random_head: Path) -> None:
    source = REGISTRY.make("state_head", {"checkpoint": random_head}, OFFERED)
    assert len(nodes_for(source, [1, 2, 3, 1, 2], 4)) == NODES
    assert len(nodes_for(source, [1, 2, 3, 1, 3], 0)) == NODES  # the state is of the token before the last
    assert len(nodes_for(source, [1, 2, 0, 1, 2], 0)) == 0


def test_a_state_that_is_no_number_spoils_its_own_row_alone(random_head: Path) -> None:
    source = REGISTRY.make("state_head", {"checkpoint": random_head}, OFFERED)
    states = np.ones((4, STATE_WIDTH), bfloat16)
    states[3] = np.nan
    hidden = HiddenStates(np.array([0, 1], np.uint32), np.array([2, 4], np.uint32), states)
    ends = np.array([3, 7], np.uint32)
    batch = Batch(np.arange(2, dtype=np.uint64), np.zeros(2, np.uint32), ends, np.ones(7, np.int32), hidden)
    assert source.propose(batch, np.full(2, NODES, np.uint32)).node_end.tolist() == [NODES, NODES]


def test_states_of_another_width_are_an_error_that_says_both(random_head: Path) -> None:
    source = REGISTRY.make("state_head", {"checkpoint": random_head}, OFFERED)
    with pytest.raises(ValueError, match=f"hidden states are 9 wide; the head was trained for {STATE_WIDTH}"):
        nodes_for(source, [1] * 5, 4, width=9)


def nodes_for(source: Any, text: list[int], states: int, width: int = STATE_WIDTH) -> list[int]:
    """Behind a text that is shown whole, with its first so many states."""
    hidden = HiddenStates(np.zeros(1, np.uint32), np.array([states], np.uint32), np.ones((states, width), bfloat16))
    ends = np.array([len(text)], np.uint32)
    batch = Batch(np.ones(1, np.uint64), np.zeros(1, np.uint32), ends, np.array(text, np.int32), hidden)
    nodes: list[int] = source.propose(batch, np.array([NODES], np.uint32)).tokens.tolist()
    return nodes


# One that was trained


@pytest.fixture(scope="module")
def target(model_dir: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)


@pytest.fixture(scope="module")
def recording(target: Any, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the target answers to a few questions."""
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    prompts = [chat_prompt(tokenizer, question) for question in questions()[:QUESTIONS]]
    file = tmp_path_factory.mktemp("recording") / "outputs.jsonl.gz"
    write_recording(file, greedy_outputs(target, tokenizer, prompts, TOKENS))
    return file


@pytest.fixture(scope="module")
def head(site: Path, model_dir: Path, recording: Path) -> Path:
    command = [sys.executable, "-m", "draftd_state_head_training", str(model_dir), str(recording)]
    file = recording.with_name("head.npz")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run(
        [*command, "--out", str(file), "--steps", str(TRAINING_STEPS)], check=True, cwd=ROOT, env=environment
    )
    return file


class WithoutStates(ClientDrafts):
    """They are kept from the drafter."""

    reads_states = False


def generate(target: Any, drafts: ClientDrafts, recorded: Sequence[RecordedRequest]) -> list[Step]:
    """What was recorded, once more."""
    prompts = {request.id: request.prompt.tolist() for request in recorded}
    steps = list(Verifier(target, Greedy(), drafts).generate(prompts, TOKENS))
    for request in recorded:
        said = [token for step in steps if step.request_id == request.id for token in step.tokens]
        assert said[: len(request.output)] == request.output.tolist()
    return steps


def nodes_of_head(server: ServerProcess) -> float:
    with urllib.request.urlopen(f"{server.http}/metrics", timeout=PATIENT) as response:
        lines = response.read().decode().splitlines()
    name = 'draftd_source_nodes_total{source="state_head"} '
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_a_server_that_is_given_states_drafts_what_the_head_learned(
    target: Any, head: Path, site: Path, recording: Path, tmp_path: Path
) -> None:
    recorded = list(read_trace(recording))
    source = {"name": "state_head", "options": {"checkpoint": str(head)}, "milliseconds": 5000}
    environment = {"PYTHONPATH": str(site), "DRAFTD_SOURCES": json.dumps([source])}
    size = target.config.vocab_size
    with ServerProcess(tmp_path, **environment) as server:
        with Client(server.ring, deadline=PATIENT, vocabulary_size=size) as client:
            together = generate(target, ClientDrafts(client, NODES, history=False), recorded)
            drafted = nodes_of_head(server)
            alone = generate(target, WithoutStates(client, NODES, history=False), recorded)
        assert nodes_of_head(server) == drafted > 0
    accepted = sum(step.accepted for step in together) / len(together)
    assert accepted > 1.5 * sum(step.accepted for step in alone) / len(alone)
