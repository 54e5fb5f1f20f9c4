"""The model as transformers runs it, batches for it, and a tiny random one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, PreTrainedModel

from draftd.adapters.transformers import DraftdDecoding
from tests.faults.process import ServerProcess

PADDING = 2  # an id of the model's vocabulary
NEW_TOKENS = 48
PROMPT_LENGTHS = (200, 96, 256, 128)  # tokens
SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "initializer_range": 0.6,  # so that its distributions are far from even
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
DOUBLING = [3, 3, 4, 4, 3, 3, 4, 4, 5, 5]
REPEATING = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]

Inputs = dict[str, Tensor]


@pytest.fixture(scope="session")
def model(model_dir: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)


def padded(texts: list[list[int]]) -> Inputs:
    """As a tokenizer with padding_side="left" gives them."""
    longest = max(map(len, texts))
    return {
        "input_ids": torch.tensor([[PADDING] * (longest - len(text)) + text for text in texts]),
        "attention_mask": torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts]),
    }


@pytest.fixture(scope="session")
def inputs(prompts: list[list[int]]) -> Callable[[int], Inputs]:
    """A batch of so many prompts, each of another length."""

    def batch(rows: int) -> Inputs:
        return padded([prompt[-length:] for prompt, length in zip(prompts, PROMPT_LENGTHS[:rows], strict=False)])

    return batch


@pytest.fixture(scope="session")
def undrafted(model: PreTrainedModel, inputs: Callable[[int], Inputs]) -> Callable[[int], Tensor]:
    """What the model says to such a batch by itself: int64[rows, n]."""
    said: dict[int, Tensor] = {}

    def generated(rows: int) -> Tensor:
        if rows not in said:
            said[rows] = model.generate(**inputs(rows), max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None)
        return said[rows]

    return generated


def random_model(config: LlamaConfig | MistralConfig) -> PreTrainedModel:
    torch.manual_seed(5)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.fixture(scope="session")
def small() -> PreTrainedModel:
    return random_model(LlamaConfig(vocab_size=6, **SHAPE))


@pytest.fixture
def decoding(small: PreTrainedModel, server: ServerProcess) -> Iterator[DraftdDecoding]:
    """For the tiny model; tests of the real one have their own."""
    with DraftdDecoding(small, endpoint=server.zmq, deadline=5.0, model="small") as decoding:
        yield decoding
