"""A small model with random weights, in a directory as models come, and what it drafts by plain forward passes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 64
LONGEST_TEXT = 512

Node = tuple[tuple[int, ...], float]  # tokens from the text down, survival


def saved(directory: Path) -> Any:
    """The model, whose distributions are uneven enough to have no ties."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LONGEST_TEXT,
        initializer_range=0.3,
    )
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(directory)
    return model


def after(model: Any, text: list[int]) -> np.ndarray:
    """float64[vocabulary]: the distribution behind a text, without any cache."""
    with torch.inference_mode():
        return model(torch.tensor([text])).logits[0, -1].double().softmax(-1).numpy()


def wanted(model: Any, text: list[int], most: int, longest: int, children: int) -> list[Node]:
    """The tree as draftd.models.drafting describes it, likeliest nodes first."""
    nodes: list[Node] = []
    frontier: list[Node] = [((), 1.0)]
    for _ in range(min(longest, most)):
        level = []
        for path, survival in frontier:
            distribution = after(model, text + list(path))
            likeliest = distribution.argsort()[::-1][:children].tolist()
            level += [((*path, token), survival * distribution[token]) for token in likeliest]
        nodes += level
        frontier = sorted(level, key=lambda node: -node[1])[:children]
    return sorted(nodes, key=lambda node: -node[1])[:most]
