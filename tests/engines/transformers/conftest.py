"""The model as transformers runs it, and batches for it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

PADDING = 2  # an id of the model's vocabulary
NEW_TOKENS = 48
PROMPT_LENGTHS = (200, 96, 256, 128)  # tokens

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
