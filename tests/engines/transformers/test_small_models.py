"""What a tiny random model shows as well as a real one: sampling, caches, threads."""

import itertools
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import MistralConfig, PreTrainedModel

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.transformers import DraftdDecoding
from draftd.client.trees import DraftTree
from tests.engines.transformers.conftest import DOUBLING, REPEATING, SHAPE, padded, random_model
from tests.faults.process import ServerProcess


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


def test_a_seed_gives_one_row_what_it_gives_without_drafts(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    def sampled(**options: Any) -> Tensor:
        torch.manual_seed(3)
        return small.generate(**padded([REPEATING]), max_new_tokens=40, do_sample=True, **options)

    expected = sampled()
    for _ in range(2):  # the second call is drafted from what the first one said
        assert torch.equal(sampled(custom_generate=decoding), expected)
    assert decoding.requests.figures.accepted > 0


def test_threads_may_share_one(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    texts = [REPEATING, DOUBLING, REPEATING[3:], DOUBLING[2:]]
    calls = 15  # of each thread
    options: dict[str, Any] = {"max_new_tokens": 8, "do_sample": False}
    expected = [small.generate(**padded([text, DOUBLING]), **options) for text in texts]

    def generated(text: list[int]) -> list[Tensor]:
        return [small.generate(**padded([text, DOUBLING]), **options, custom_generate=decoding) for _ in range(calls)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(texts)) as threads:
            answers = list(threads.map(generated, texts))
    finally:
        sys.setswitchinterval(interval)
    for said, due in zip(answers, expected, strict=True):
        assert all(torch.equal(sequences, due) for sequences in said)
    figures = decoding.requests.figures
    assert figures.steps + figures.accepted == len(texts) * calls * 2 * 8
    assert "0 open" in repr(decoding)
    assert decoding.client.health().counters.row_errors == 0


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


@pytest.mark.parametrize("texts", [[REPEATING], [REPEATING, DOUBLING]], ids=["one row", "two"])
def test_the_cache_comes_back_as_it_does_without_drafts(
    small: PreTrainedModel, decoding: DraftdDecoding, texts: list[list[int]]
) -> None:
    batch = padded(texts)
    options: dict[str, Any] = {"max_new_tokens": 24, "do_sample": False, "return_dict_in_generate": True}
    plain = small.generate(**batch, **options)
    drafted = small.generate(**batch, **options, custom_generate=decoding)
    assert decoding.requests.figures.accepted > 0
    for layer, expected in zip(drafted.past_key_values.layers, plain.past_key_values.layers, strict=True):
        assert layer.keys.shape == expected.keys.shape
        paddings = (1 - batch["attention_mask"]).sum(dim=1)
        for row, padding in enumerate(paddings.tolist()):
            torch.testing.assert_close(layer.keys[row, :, padding:], expected.keys[row, :, padding:])
            torch.testing.assert_close(layer.values[row, :, padding:], expected.values[row, :, padding:])


def test_rows_that_end_at_different_places_give_no_cache(small: PreTrainedModel, decoding: DraftdDecoding) -> None:
    options: dict[str, Any] = {"max_new_tokens": 24, "do_sample": False, "return_dict_in_generate": True}
    batch = padded([REPEATING, DOUBLING])
    first = small.generate(**batch, **options).sequences[:, len(REPEATING) :]
    end = next(token for token in first[0].tolist() if token not in first[1, : first[0].tolist().index(token) + 1])
    ended = small.generate(**batch, **options, eos_token_id=end, custom_generate=decoding)
    assert ended.past_key_values is None
