"""Rows of one batch with different LoRA weights: the same output as without drafts, and nothing of one in the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftMixedModel, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

from draftd.adapters.transformers import DraftdDecoding
from draftd.client import Client, Namespace
from tests.engines.transformers.conftest import padded
from tests.faults.process import ServerProcess

GREEDY: dict[str, Any] = {"max_new_tokens": 40, "do_sample": False, "eos_token_id": None}
ROWS = ["first", "second", "first", "__base__"]


@pytest.fixture(scope="module")
def tuned(model_dir: Path) -> PeftModel | PeftMixedModel:
    """With two adapters of random weights, large enough to say something of their own, small enough to make sense."""
    torch.manual_seed(1)
    weights = LoraConfig(r=4, lora_alpha=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    tuned = get_peft_model(model, weights, adapter_name="first")
    tuned.add_adapter("second", weights)
    return tuned.eval()


@pytest.fixture
def decoding(tuned: PeftModel, server: ServerProcess) -> Iterator[DraftdDecoding]:
    with DraftdDecoding(tuned, endpoint=server.zmq, deadline=5.0, model="tuned") as decoding:
        yield decoding


def drafted(server: ServerProcess, adapter: str, text: list[int]) -> list[int]:
    """What draftd makes of a text that nobody of this adapter is generating."""
    with Client(server.zmq, Namespace(model="tuned", adapter=adapter), deadline=5.0) as client:
        request = client.open("reader", text, wait=True, share="none", shape="chain")
        return request.draft(4).tokens.tolist()


def test_two_adapters_in_one_batch(
    tuned: PeftModel, decoding: DraftdDecoding, server: ServerProcess, prompts: list[list[int]]
) -> None:
    inputs = padded([prompts[0][-96:], prompts[0][-96:], prompts[1][-64:], prompts[1][-64:]])
    expected = tuned.generate(**inputs, **GREEDY, adapter_names=ROWS)
    assert len({tuple(row) for row in expected[:, -40:].tolist()}) == len(ROWS)

    generated = tuned.generate(**inputs, **GREEDY, adapter_names=ROWS, adapters=ROWS, custom_generate=decoding)
    assert torch.equal(generated, expected)
    figures = decoding.requests.figures_of
    assert {adapter: it.steps + it.accepted for adapter, it in figures.items()} == {"first": 80, "second": 40, "": 40}
    assert sum(it.accepted for it in figures.values()) > 0

    first, second = expected[0].tolist(), expected[1].tolist()
    assert drafted(server, "first", first[-24:-4]) == first[-4:]
    assert drafted(server, "second", second[-24:-4]) == second[-4:]
    assert drafted(server, "second", first[-24:-4]) != first[-4:]
    assert drafted(server, "", first[-24:-4]) != first[-4:]

    # Said once, it is drafted next time, for those who said it.
    before = {adapter: it.accepted for adapter, it in figures.items()}
    again = tuned.generate(**inputs, **GREEDY, adapter_names=ROWS, adapters=ROWS, custom_generate=decoding)
    assert torch.equal(again, expected)
    gained = {adapter: it.accepted - before[adapter] for adapter, it in figures.items()}
    assert gained["first"] > 40
    assert gained["second"] > 20
    assert gained[""] > 20


def test_the_active_adapter_is_the_namespace_of_all_rows(
    tuned: PeftModel, decoding: DraftdDecoding, prompts: list[list[int]]
) -> None:
    inputs = padded([prompts[0][-32:]])
    tuned.set_adapter("second")
    tuned.generate(**inputs, max_new_tokens=4, do_sample=False, custom_generate=decoding)
    with tuned.disable_adapter():
        tuned.generate(**inputs, max_new_tokens=4, do_sample=False, custom_generate=decoding)
    assert set(decoding.requests.figures_of) == {"second", ""}
