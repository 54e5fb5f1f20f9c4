"""Two LoRA adapters and the model without, in one batch: the same output, and namespaces of their own."""

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from vllm.lora.request import LoRARequest

from tests.engines.vllm.engine import Engine
from tests.faults.process import ServerProcess

NAMES = ("first", "second")


@pytest.fixture(scope="module")
def adapters(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoRARequest]:
    """Of random weights, large enough to say something of their own."""
    torch.manual_seed(1)
    requests: dict[str, LoRARequest] = {}
    for number, name in enumerate(NAMES, start=1):
        model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
        weights = LoraConfig(r=8, lora_alpha=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        directory = tmp_path_factory.mktemp(name)
        get_peft_model(model, weights).save_pretrained(directory)
        requests[name] = LoRARequest(name, number, str(directory))
    return requests


def test_adapters_of_one_batch_draft_each_from_its_own(
    adapting: Engine, adapters: dict[str, LoRARequest], server: ServerProcess, prompts: list[list[int]]
) -> None:
    rows = [adapters["first"], adapters["second"], None, adapters["first"]]
    undrafted = adapting.generate(prompts[:4], 48, adapters=rows)
    assert adapting.proposer.asking.requests.figures.drafted == 0, "there is no drafter yet"
    proposer = adapting.draft_from(server.zmq)
    assert adapting.generate(prompts[:4], 48, adapters=rows) == undrafted
    figures = proposer.asking.requests.figures_of
    assert set(figures) == {*NAMES, ""}
    assert all(each.accepted > 0 for each in figures.values())
