"""Greedy output of a real model is what `generate` gives without drafts, whatever is drafted."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from draftd.client import Client, Namespace
from draftd.verify.drafts import ClientDrafts, DraftSource
from draftd.verify.rules import Block, Greedy, OneHot, Rule
from draftd.verify.verifier import Step, Verifier
from tests.engines.verify.sources import Foreseen, HalfJunk, Sampled
from tests.faults.process import ServerProcess

REQUESTS = 2
PROMPT_TOKENS = 192  # the ends of the prompts: enough to copy from
NEW_TOKENS = 48
DEADLINE = 5.0  # seconds; a late draft would be an empty one, and nothing to test


@pytest.fixture(scope="module")
def model(model_dir: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)


@pytest.fixture(scope="module")
def batch(prompts: list[list[int]]) -> dict[str, list[int]]:
    return {f"request-{number}": prompt[-PROMPT_TOKENS:] for number, prompt in enumerate(prompts[:REQUESTS])}


@pytest.fixture(scope="module")
def plain(model: Any, batch: dict[str, list[int]]) -> dict[str, list[int]]:
    """What the model generates by itself."""
    return {
        request_id: model.generate(
            torch.tensor([prompt]), max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None
        )[0, len(prompt) :].tolist()
        for request_id, prompt in batch.items()
    }


def emitted(steps: list[Step]) -> dict[str, list[int]]:
    text: dict[str, list[int]] = {}
    for step in steps:
        assert len(step.tokens) >= 1
        text.setdefault(step.request_id, []).extend(step.tokens)
    return text


def run(model: Any, rule: Rule, drafts: DraftSource | None, batch: dict[str, list[int]]) -> list[Step]:
    return list(Verifier(model, rule, drafts).generate(batch, NEW_TOKENS))


def test_without_drafts(model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]]) -> None:
    steps = run(model, Greedy(), None, batch)
    assert emitted(steps) == plain
    assert len(steps) == REQUESTS * NEW_TOKENS


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_with_drafts_of_a_server(
    model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]], server: ServerProcess, shape: Any
) -> None:
    vocabulary = model.config.vocab_size
    with Client(server.zmq, Namespace(model="smollm2"), deadline=DEADLINE, vocabulary_size=vocabulary) as client:
        steps = run(model, Greedy(), ClientDrafts(client, nodes=8, shape=shape), batch)
        counters = client.health().counters
    assert emitted(steps) == plain
    accepted = sum(step.accepted for step in steps)
    assert accepted == REQUESTS * NEW_TOKENS - len(steps)
    assert accepted > REQUESTS * NEW_TOKENS / 4  # recorded code edits: much of it is drafted
    assert counters.late == counters.unreachable == counters.refused == 0


@pytest.mark.parametrize("rule", [Greedy(), OneHot()])
def test_with_junk(model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]], rule: Rule) -> None:
    whole_texts = [prompt + plain[request_id] for request_id, prompt in batch.items()]
    junk = HalfJunk(whole_texts, model.config.vocab_size, nodes=8)
    steps = run(model, rule, junk, batch)
    assert emitted(steps) == plain
    assert sum(step.accepted for step in steps) > 0
    assert junk.lengths_at_end == {id_: len(prompt) + NEW_TOKENS for id_, prompt in batch.items()}
    assert not junk.texts


def test_with_drafts_that_the_model_samples_itself(
    model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]]
) -> None:
    class Likeliest:
        def draw(self, weights: Any) -> int:
            return int(weights.argmax())

        def happens(self, probability: float) -> bool:
            return probability >= 1.0

    request_id, prompt = next(iter(batch.items()))
    steps = list(Verifier(model, Block(), Sampled(model, 3, Likeliest())).generate({request_id: prompt}, 8))
    assert emitted(steps) == {request_id: plain[request_id][:8]}
    assert [len(step.tokens) for step in steps] == [4, 4]


def test_it_ends_behind_a_stop_id_and_nowhere_else(
    model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]]
) -> None:
    """What is drafted behind it is right, too, and neither emitted nor counted as accepted."""
    request_id, prompt = next(iter(batch.items()))
    stop = plain[request_id][NEW_TOKENS // 2]
    wanted = plain[request_id][: plain[request_id].index(stop) + 1]
    verifier = Verifier(model, Greedy(), Foreseen(prompt + plain[request_id]))
    steps = list(verifier.generate({request_id: prompt}, NEW_TOKENS, stop_ids=[stop]))
    assert steps == [Step(request_id, wanted, accepted=len(wanted), drafted=NEW_TOKENS)]


def test_it_ends_at_the_limit(model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]]) -> None:
    request_id, prompt = next(iter(batch.items()))
    steps = list(Verifier(model, Greedy(), Foreseen(prompt + plain[request_id])).generate({request_id: prompt}, 5))
    assert steps == [Step(request_id, plain[request_id][:5], accepted=5, drafted=NEW_TOKENS)]


def test_a_caller_that_wants_no_more_leaves_no_request_open(
    model: Any, batch: dict[str, list[int]], plain: dict[str, list[int]]
) -> None:
    junk = HalfJunk([prompt + plain[id_] for id_, prompt in batch.items()], model.config.vocab_size, nodes=2)
    steps = Verifier(model, Greedy(), junk).generate(batch, NEW_TOKENS)
    seen = emitted([next(steps) for _ in range(REQUESTS + 1)])  # the first request is one step ahead
    steps.close()
    assert junk.lengths_at_end == {id_: len(prompt) + len(seen[id_]) for id_, prompt in batch.items()}
