"""What a tiny random model shows as well as a real one: sampling, refusals, caches."""

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    SynthIDTextWatermarkingConfig,
)

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.transformers import DraftdDecoding
from draftd.client.trees import DraftTree
from tests.engines.transformers.conftest import padded
from tests.faults.process import ServerProcess

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
OF_THE_WHOLE_BATCH: list[tuple[dict[str, Any], str]] = [
    ({"prefix_allowed_tokens_fn": lambda _row, _ids: [3, 4]}, "prefix_allowed_tokens_fn"),
    ({"encoder_no_repeat_ngram_size": 2}, "encoder_no_repeat_ngram_size"),
    ({"encoder_repetition_penalty": 1.5}, "encoder_repetition_penalty"),
    ({"watermarking_config": SynthIDTextWatermarkingConfig(2, list(range(1, 30)))}, "SynthID's watermarking_config"),
]
DOUBLING = [3, 3, 4, 4, 3, 3, 4, 4, 5, 5]
REPEATING = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]


def random_model(config: LlamaConfig | MistralConfig) -> PreTrainedModel:
    torch.manual_seed(5)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.fixture(scope="module")
def small() -> PreTrainedModel:
    return random_model(LlamaConfig(vocab_size=6, **SHAPE))


@pytest.fixture
def decoding(small: PreTrainedModel, server: ServerProcess) -> Iterator[DraftdDecoding]:
    with DraftdDecoding(small, endpoint=server.zmq, deadline=5.0, model="small") as decoding:
        yield decoding


def exact_distribution(model: PreTrainedModel, prompt: list[int], tokens: int, temperature: float) -> Tensor:
    """float64[6, 6, 6]: of the next three tokens, all texts enumerated."""
    texts = torch.tensor([prompt + list(text) for text in itertools.product(range(6), repeat=tokens)])
    with torch.no_grad():
        logits = model(texts).logits[:, len(prompt) - 1 : -1].double() / temperature
    chosen = logits.log_softmax(dim=-1).gather(2, texts[:, len(prompt) :, None])
    return chosen.sum(dim=(1, 2)).exp().view([6] * tokens)


def chi_square_tail(statistic: float, freedom: int) -> float:
    """P(a chi-square variable is at least that large), by the Wilson-Hilferty approximation."""
    deviation = ((statistic / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / (2 / (9 * freedom)) ** 0.5
    return float(0.5 * torch.erfc(torch.tensor(deviation / 2**0.5)))


def test_sampled_outputs_are_distributed_as_without_drafts(
    small: PreTrainedModel, decoding: DraftdDecoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows get different drafts, likely and unlikely ones, of different lengths."""
    drafts = [[3, 3], [1], [0, 5], []]

    def step(_: EngineRequests, rows: list[EngineRow]) -> list[DraftTree]:
        chains = [drafts[(place + len(row.text)) % 4][: row.max_nodes] for place, row in enumerate(rows)]
        return [
            DraftTree(np.array(it, "i4"), np.arange(len(it), dtype="i2") - 1, np.ones(len(it), "f4")) for it in chains
        ]

    monkeypatch.setattr(EngineRequests, "step", step)
    monkeypatch.setattr(EngineRequests, "finish", lambda *_: None)
    expected = exact_distribution(small, REPEATING, tokens=3, temperature=1.5)
    torch.manual_seed(11)
    rows = 2000
    seen = torch.zeros_like(expected)
    for _ in range(3):
        sampled = small.generate(
            **padded([REPEATING] * rows),
            max_new_tokens=3,
            do_sample=True,
            temperature=1.5,
            top_k=0,
            custom_generate=decoding,
        )[:, -3:]
        seen.index_put_(tuple(sampled.T), torch.ones(rows, dtype=torch.float64), accumulate=True)
    expected *= seen.sum()
    frequent = expected >= 5  # what is rarer is one class together
    observed = torch.cat([seen[frequent], seen[~frequent].sum()[None]])
    due = torch.cat([expected[frequent], expected[~frequent].sum()[None]])
    statistic = float(((observed - due) ** 2 / due).sum())
    assert int(frequent.sum()) > 20
    assert chi_square_tail(statistic, len(due) - 1) > 0.001


def test_sampling_drafts_from_a_real_server(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    torch.manual_seed(3)
    sampled = small.generate(
        **padded([REPEATING, REPEATING[3:]]),
        max_new_tokens=40,
        do_sample=True,
        temperature=0.5,
        custom_generate=decoding,
    )
    assert sampled.shape == (2, len(REPEATING) + 40)
    figures = decoding.requests.figures
    assert figures.accepted > 0
    assert figures.steps + figures.accepted == 80


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"num_beams": 2}, "generation mode beam_search"),
        ({"prompt_lookup_num_tokens": 3}, "generation mode assisted_generation"),
        ({"use_cache": False}, "use_cache=False"),
        ({"return_dict_in_generate": True, "output_scores": True}, "output_scores"),
        ({"guidance_scale": 1.5}, "guidance_scale"),
        ({"inputs_embeds": torch.zeros(2, 3, 16)}, "inputs_embeds"),
        ({"position_ids": torch.arange(5)[None]}, "position_ids of another shape than input_ids"),
    ],
)
def test_what_is_not_supported_is_named(
    small: PreTrainedModel, decoding: DraftdDecoding, asked: dict[str, Any], refused: str
) -> None:
    with pytest.raises(ValueError, match=f"DraftdDecoding can't do {refused}; call generate without custom_generate"):
        small.generate(**padded([[1, 2, 3], [4, 5]]), max_new_tokens=4, custom_generate=decoding, **asked)


@pytest.mark.parametrize(("asked", "name"), OF_THE_WHOLE_BATCH)
def test_processors_of_a_whole_batch_go_with_one_row_alone(
    small: PreTrainedModel, decoding: DraftdDecoding, asked: dict[str, Any], name: str
) -> None:
    greedy: dict[str, Any] = {**padded([DOUBLING]), "max_new_tokens": 24, "do_sample": False}
    expected = small.generate(**greedy, **asked)
    assert not torch.equal(expected, small.generate(**greedy))
    assert torch.equal(small.generate(**greedy, **asked, custom_generate=decoding), expected)
    with pytest.raises(ValueError, match=f"DraftdDecoding can't do {name} for more than one row"):
        small.generate(**padded([DOUBLING, DOUBLING[3:]]), **asked, max_new_tokens=24, custom_generate=decoding)


def test_arguments_that_cannot_be_meant_are_named(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    with pytest.raises(ValueError, match="adapters names the weights of 1 rows; the batch has 2"):
        small.generate(**padded([[1], [2]]), max_new_tokens=4, custom_generate=decoding, adapters=["a"])
    with pytest.raises(ValueError, match="StaticCache can't take rejected tokens back"):
        small.generate(**padded([[1]]), max_new_tokens=4, custom_generate=decoding, cache_implementation="static")
    with pytest.raises(ValueError, match="max_nodes is 0; draft at least 1 token"):
        DraftdDecoding(small, max_nodes=0)
    assert repr(decoding).startswith("DraftdDecoding('small' at ipc://")


def test_the_log_counts_steps_alone_and_not_the_greeting(
    small: PreTrainedModel, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with DraftdDecoding(small, endpoint="ipc:///nowhere/draftd.sock", model="small") as decoding:
        small.generate(**padded([REPEATING]), max_new_tokens=4, custom_generate=decoding)
    assert "draftd: 1 of 1 steps without drafts" in caplog.text


def test_an_interrupted_call_leaves_nothing_open(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    def interrupt(*_: Any) -> Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small.generate(**padded([REPEATING]), max_new_tokens=4, custom_generate=decoding, logits_processor=[interrupt])
    assert "0 open" in repr(decoding)


def test_a_sliding_window_goes_with_one_row_and_more_are_refused(server: ServerProcess) -> None:
    windowed = random_model(MistralConfig(vocab_size=6, sliding_window=6, **SHAPE))
    expected = windowed.generate(**padded([REPEATING]), max_new_tokens=40, do_sample=False)
    with DraftdDecoding(windowed, endpoint=server.zmq, deadline=5.0, model="windowed") as decoding:
        for _ in range(2):  # the second call is drafted from what the first one said
            generated = windowed.generate(
                **padded([REPEATING]), max_new_tokens=40, do_sample=False, custom_generate=decoding
            )
            assert torch.equal(generated, expected)
        assert decoding.requests.figures.accepted > 40
        with pytest.raises(ValueError, match=r"cache can't be moved apart .*; give generate one row at a time"):
            windowed.generate(**padded([[1], [2]]), max_new_tokens=4, custom_generate=decoding)


def test_a_cache_that_holds_the_beginning_is_gone_on_with(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    expected = small.generate(**padded([REPEATING]), max_new_tokens=40, do_sample=False)
    cache = small(torch.tensor([REPEATING[:-3]])).past_key_values
    options: dict[str, Any] = {"max_new_tokens": 40, "do_sample": False, "custom_generate": decoding}
    assert torch.equal(small.generate(**padded([REPEATING]), **options, past_key_values=cache), expected)
    with pytest.raises(ValueError, match="past_key_values holds 51 tokens, input_ids 12; give the whole text"):
        small.generate(**padded([REPEATING]), **options, past_key_values=cache)
