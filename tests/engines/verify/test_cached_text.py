"""The KV cache after verifying a tree is the one of plain decoding."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from draftd.models.attention import check_model
from draftd.verify.cached_text import CachedText
from draftd.verify.rules import Proposal, Verdict

VOCABULARY = 50
PROMPT = [3, 14, 15, 9, 26]
ROUNDING = 1e-4  # of float32; what another token would put there differs by more than 1
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.5,
}


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation=request.param)).eval()


def decoded(model: Any, text: list[int]) -> CachedText:
    """The cache after decoding `text` token by token, the last one still unseen."""
    cached = CachedText(model, PROMPT)
    nothing = Proposal(np.empty(0, np.int32), np.empty(0, np.int16))
    for token in text[len(PROMPT) :]:
        cached.forward(nothing)
        cached.commit(nothing, Verdict([], token))
    return cached


def logits_without_cache(model: Any, text: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return model(torch.tensor([text])).logits[0, -1].numpy()


TREE = Proposal(np.array([7, 8, 9, 10, 11, 12], np.int32), np.array([-1, -1, 0, 1, 1, 4], np.int16))
PATH = [1, 4, 5]  # neither the first nodes nor next to each other


def test_logits_of_every_node_are_those_of_its_path_alone(model: Any) -> None:
    logits = CachedText(model, PROMPT).forward(TREE)
    paths = [[], [7], [8], [7, 9], [8, 10], [8, 11], [8, 11, 12]]
    for row, path in enumerate(paths):
        assert np.abs(logits[row] - logits_without_cache(model, PROMPT + path)).max() < ROUNDING


@pytest.mark.parametrize("path", [[], [0], [0, 2], PATH])
def test_the_cache_holds_what_plain_decoding_put_there(model: Any, path: list[int]) -> None:
    bonus = 40
    cached = CachedText(model, PROMPT)
    for _ in range(2):  # behind the prompt, and behind text that was drafted itself
        cached.forward(TREE)
        cached.commit(TREE, Verdict(path, bonus))
    text = PROMPT + 2 * [*TREE.tokens[path].tolist(), bonus]
    plain = decoded(model, text)
    assert cached.cache.get_seq_length() == plain.cache.get_seq_length() == len(text) - 1
    for ours, theirs in zip(cached.cache.layers, plain.cache.layers, strict=True):
        assert (ours.keys - theirs.keys).abs().max() < ROUNDING
        assert (ours.values - theirs.values).abs().max() < ROUNDING


@pytest.mark.parametrize("path", [[], [0], [0, 2], PATH])
def test_hidden_states_are_those_from_which_the_next_token_is_drawn(model: Any, path: list[int]) -> None:
    bonus = 40
    cached = CachedText(model, PROMPT)
    states: dict[int, np.ndarray] = {}
    for _ in range(2):
        cached.forward(TREE, with_states=True)
        new = cached.commit(TREE, Verdict(path, bonus))
        assert new is not None
        assert new.start == len(states)  # each position once
        states |= dict(enumerate(new.values.astype(np.float32), new.start))
    text = PROMPT + 2 * [*TREE.tokens[path].tolist(), bonus]
    assert len(states) == len(text) - 1
    head = model.get_output_embeddings().weight.detach().numpy()
    for position, state in states.items():
        logits = logits_without_cache(model, text[: position + 1])
        assert np.abs(head @ state - logits).max() < 2**-7 * np.abs(head * state).sum(axis=1).max()  # as bfloat16


def test_nobody_is_given_states_who_asks_for_none(model: Any) -> None:
    cached = CachedText(model, PROMPT)
    cached.forward(TREE)
    assert cached.commit(TREE, Verdict(PATH, 40)) is None


@pytest.mark.parametrize("token", [-1, VOCABULARY])
def test_ids_outside_the_vocabulary_are_refused(model: Any, token: int) -> None:
    with pytest.raises(ValueError, match=f"token id {token} is outside the model's vocabulary of {VOCABULARY}"):
        CachedText(model, PROMPT).forward(Proposal(np.array([token], np.int32), np.array([-1], np.int16)))


def test_an_empty_prompt_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="the prompt is empty"):
        CachedText(model, [])


def test_models_that_forget_text_or_mask_it_themselves_are_refused(model: Any) -> None:
    check_model(model)
    with pytest.raises(ValueError, match="DynamicSlidingWindowLayer; only full attention"):
        check_model(MistralForCausalLM(MistralConfig(**SIZES, sliding_window=4)))
    with pytest.raises(ValueError, match="attention is flex_attention; load it with 'sdpa' or 'eager'"):
        check_model(LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation="flex_attention")))
