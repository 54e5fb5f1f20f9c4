"""A model that says the same in other tokens: the ids permuted, and the rarest tokens cut off."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM


def save_permuted_and_cut(source: Path, directory: Path, kept: int, seed: int) -> None:
    """Of a model directory whose tokens are merged in the order of their ids, a copy with the first `kept` tokens."""
    old_ids = np.random.default_rng(seed).permutation(kept)
    model = AutoModelForCausalLM.from_pretrained(source)
    rows = model.get_input_embeddings().weight.detach()[torch.from_numpy(old_ids)].clone()
    model.resize_token_embeddings(kept)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(rows)
    model.save_pretrained(directory)
    new_ids = {int(old): new for new, old in enumerate(old_ids)}
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    (directory / "tokenizer.json").write_text(json.dumps(_with_ids(tokenizer, new_ids)))
    (directory / "tokenizer_config.json").write_bytes((source / "tokenizer_config.json").read_bytes())


def _with_ids(tokenizer: dict[str, Any], new_ids: dict[int, int]) -> dict[str, Any]:
    model = tokenizer["model"]
    vocabulary = {token: new_ids[old] for token, old in model["vocab"].items() if old in new_ids}
    merges = [pair for pair in model["merges"] if "".join(pair) in vocabulary]
    added = [token | {"id": new_ids[token["id"]]} for token in tokenizer["added_tokens"]]
    return tokenizer | {"model": model | {"vocab": vocabulary, "merges": merges}, "added_tokens": added}
