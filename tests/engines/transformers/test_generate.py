"""generate with drafts says what it says without, whatever happens to the drafter."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel, StoppingCriteria, StoppingCriteriaList

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.transformers import DraftdDecoding
from draftd.client.trees import DraftTree
from tests.engines.transformers.conftest import NEW_TOKENS, PADDING, Inputs
from tests.faults.process import ServerProcess, until

PATIENT = 5.0  # seconds: on a busy machine a draft may take long
GREEDY: dict[str, Any] = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "eos_token_id": None}

Batch = Callable[[int], Inputs]
Said = Callable[[int], Tensor]


@pytest.fixture
def decoding(model: PreTrainedModel, server: ServerProcess) -> Iterator[DraftdDecoding]:
    with DraftdDecoding(model, endpoint=server.zmq, deadline=PATIENT) as decoding:
        yield decoding


@pytest.mark.parametrize("rows", [1, 4])
def test_greedy_output_is_what_it_is_without_drafts(
    model: PreTrainedModel, decoding: DraftdDecoding, inputs: Batch, undrafted: Said, rows: int
) -> None:
    generated = model.generate(**inputs(rows), **GREEDY, custom_generate=decoding)
    assert torch.equal(generated, undrafted(rows))
    figures = decoding.requests.figures
    assert figures.accepted > 0
    assert figures.steps + figures.accepted == rows * NEW_TOKENS


def test_what_one_call_said_is_drafted_in_the_next(
    model: PreTrainedModel, decoding: DraftdDecoding, inputs: Batch, undrafted: Said
) -> None:
    for _ in range(2):
        steps = decoding.requests.figures.steps
        assert torch.equal(model.generate(**inputs(1), **GREEDY, custom_generate=decoding), undrafted(1))
    assert decoding.requests.figures.steps - steps < NEW_TOKENS / 4


class At(StoppingCriteria):  # type: ignore[misc]
    """Does things when a row has so many new tokens; stops nothing."""

    def __init__(self, inputs: Inputs, **actions: Callable[[], object]) -> None:
        self._start = inputs["input_ids"].shape[1]
        self._actions = {int(name.removeprefix("after_")): action for name, action in actions.items()}

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> bool:
        self._actions.pop(input_ids.shape[1] - self._start, lambda: None)()
        return False


def test_a_server_that_is_killed_and_comes_back_changes_nothing(
    model: PreTrainedModel, server: ServerProcess, inputs: Batch, undrafted: Said
) -> None:
    with DraftdDecoding(model, endpoint=server.zmq, deadline=0.25) as decoding:
        drafted: list[int] = []

        def restart() -> None:
            drafted.append(decoding.requests.figures.drafted)
            server.start()
            until(lambda: decoding.client.check().state == "serving")

        events = StoppingCriteriaList([At(inputs(4), after_8=server.kill, after_24=restart)])
        generated = model.generate(**inputs(4), **GREEDY, stopping_criteria=events, custom_generate=decoding)
        assert torch.equal(generated, undrafted(4))
        counters = decoding.client.health().counters
        assert counters.unreachable + counters.off > 0
        assert decoding.requests.figures.drafted > drafted[0]


def test_a_server_that_does_not_answer_in_time_changes_nothing(
    model: PreTrainedModel, server: ServerProcess, inputs: Batch, undrafted: Said
) -> None:
    with DraftdDecoding(model, endpoint=server.zmq, deadline=0.001) as decoding:
        events = StoppingCriteriaList([At(inputs(1), after_8=server.freeze)])
        generated = model.generate(**inputs(1), **GREEDY, stopping_criteria=events, custom_generate=decoding)
        server.thaw()
        assert decoding.client.health().counters.late > 0
    assert torch.equal(generated, undrafted(1))


def test_no_server_at_all_changes_nothing(model: PreTrainedModel, inputs: Batch, undrafted: Said) -> None:
    with DraftdDecoding(model, endpoint="ipc:///nowhere/draftd.sock") as decoding:
        assert torch.equal(model.generate(**inputs(1), **GREEDY, custom_generate=decoding), undrafted(1))
        assert decoding.requests.figures.drafted == 0


def chain(tokens: list[int]) -> DraftTree:
    return DraftTree(np.array(tokens, np.int32), np.arange(len(tokens), dtype=np.int16) - 1, np.ones(len(tokens), "f4"))


def test_drafts_that_are_right_for_a_while_and_then_junk_change_nothing(
    model: PreTrainedModel, decoding: DraftdDecoding, inputs: Batch, undrafted: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows accept none to all of their drafts, each another number at each step."""
    dice = random.Random(7)
    said = [row[row != PADDING].tolist() for row in undrafted(4)]
    accepted: list[int] = []

    def drafts(_: EngineRequests, rows: list[EngineRow]) -> list[DraftTree]:
        chains = []
        for row in rows:
            (text,) = (text for text in said if text[: len(row.text)] == row.text.tolist())
            right = text[len(row.text) : len(row.text) + dice.randint(0, row.max_nodes)]
            junk = [dice.randrange(model.config.vocab_size) for _ in range(dice.randint(0, row.max_nodes - len(right)))]
            accepted.append(len(right))
            chains.append(chain(right + junk))
        return chains

    monkeypatch.setattr(EngineRequests, "step", drafts)
    monkeypatch.setattr(EngineRequests, "finish", lambda *_: None)
    generated = model.generate(**inputs(4), **GREEDY, custom_generate=decoding)
    assert torch.equal(generated, undrafted(4))
    assert set(accepted) == set(range(9))


def test_rows_end_where_they_end_without_drafts(
    model: PreTrainedModel, decoding: DraftdDecoding, inputs: Batch, undrafted: Said
) -> None:
    """Each at another place, and the rest is padding."""
    width = inputs(4)["input_ids"].shape[1]
    ends = [int(undrafted(4)[0, width + 5]), int(undrafted(4)[2, width + 20])]
    stops = {**GREEDY, "eos_token_id": ends, "pad_token_id": PADDING}
    expected = model.generate(**inputs(4), **stops)
    assert len(set((expected[:, width:] != PADDING).sum(dim=1).tolist())) > 1
    assert torch.equal(model.generate(**inputs(4), **stops, custom_generate=decoding), expected)


def test_processors_of_logits_see_what_they_see_without_drafts(
    model: PreTrainedModel, decoding: DraftdDecoding, inputs: Batch
) -> None:
    processed = {
        **GREEDY,
        "repetition_penalty": 1.1,
        "no_repeat_ngram_size": 4,
        "eos_token_id": 198,
        "min_new_tokens": 24,
    }
    expected = model.generate(**inputs(4), **processed, pad_token_id=PADDING)
    generated = model.generate(
        **inputs(4), **processed, pad_token_id=PADDING, custom_generate=decoding, return_dict_in_generate=True
    )
    assert torch.equal(generated.sequences, expected)
    assert decoding.requests.figures.accepted > 0
