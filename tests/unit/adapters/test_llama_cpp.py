"""The draft model for llama-cpp-python, called as `Llama.generate` calls one. llama-cpp-python itself is not run."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from draftd.adapters.llama_cpp import DraftdDraftModel
from draftd.engine import Engine
from tests.contract.serving import zmq_served
from tests.faults.process import ServerProcess, until

VOCABULARY_SIZE = 100
CYCLE = [11, 12, 13, 14, 15, 16, 17]
Model = Callable[[list[int]], int]


def goes_round(text: list[int]) -> int:
    """A model that says the cycle, with a detour that comes back now and then."""
    if len(text) % 10 == 0:
        return 50 + len(text) // 10 % 7
    last = next(token for token in reversed(text) if token in CYCLE)
    return CYCLE[(CYCLE.index(last) + 1) % len(CYCLE)]


def undrafted(prompt: list[int], count: int, model: Model = goes_round) -> list[int]:
    text = list(prompt)
    while len(text) < len(prompt) + count:
        text.append(model(text))
    return text


class Passes:
    """Decodes as `Llama.generate` does: the draft model gets all that is committed; of what it drafts the tokens count
    that the model says itself, and one more."""

    def __init__(self, draft_model: DraftdDraftModel) -> None:
        self.draft_model = draft_model
        self.drafts: list[list[int]] = []

    def generate(self, prompt: list[int], count: int, model: Model = goes_round) -> list[int]:
        text = [*prompt, model(prompt)]
        while len(text) < len(prompt) + count:
            draft = self.draft_model(np.array(text, np.intc))
            assert draft.dtype == np.intc
            self.drafts.append(draft.tolist())
            for drafted in [*self.drafts[-1], None]:
                text.append(model(text))
                if text[-1] != drafted:
                    break
        return text[: len(prompt) + count]


@pytest.fixture
def passes(engine: Engine, tmp_path: Path) -> Iterator[Passes]:
    with (
        zmq_served(engine, tmp_path) as endpoint,
        DraftdDraftModel(VOCABULARY_SIZE, endpoint=endpoint, model="m", deadline=30.0) as draft_model,
    ):
        yield Passes(draft_model)


def test_output_is_the_same_in_fewer_passes(passes: Passes, engine: Engine) -> None:
    prompt = CYCLE * 3
    assert passes.generate(prompt, 60) == undrafted(prompt, 60)
    assert len(passes.drafts) < 40
    assert max(map(len, passes.drafts)) <= 8
    figures = engine.statistics()
    assert figures.accepted_tokens > 20
    assert figures.sessions == 1
    assert repr(passes.draft_model).startswith("DraftdDraftModel('m' at ipc://")


@pytest.mark.parametrize(
    "second",
    [CYCLE * 2, undrafted(CYCLE * 3, 20)[:-12], [*undrafted(CYCLE * 3, 20), *range(70, 90)]],
    ids=["another prompt", "part of the same text", "the same conversation, one turn later"],
)
def test_the_next_prompt_is_a_request_of_its_own_and_knows_what_was_said(
    passes: Passes, engine: Engine, second: list[int]
) -> None:
    passes.generate(CYCLE * 3, 20)
    assert passes.generate(second, 30) == undrafted(second, 30)
    assert engine.statistics().sessions == 1
    passes.draft_model.client.open("last", [], wait=True)  # all that is closed is in the history now
    assert engine.statistics().index_tokens["history"] > 0


def test_the_last_request_is_closed_with_the_model(engine: Engine, tmp_path: Path) -> None:
    with zmq_served(engine, tmp_path, drain=5.0) as endpoint:
        with DraftdDraftModel(VOCABULARY_SIZE, endpoint=endpoint, model="m", deadline=30.0) as draft_model:
            Passes(draft_model).generate(CYCLE * 3, 20)
            assert engine.statistics().sessions == 1
        with DraftdDraftModel(VOCABULARY_SIZE, endpoint=endpoint, model="m", deadline=30.0) as another:
            until(lambda: another.client.check() and not engine.statistics().sessions)


def test_a_server_that_goes_and_comes_back_changes_nothing(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path) as server,
        DraftdDraftModel(VOCABULARY_SIZE, endpoint=server.zmq, model="m", deadline=0.25) as draft_model,
    ):
        passes = Passes(draft_model)

        def eventful(text: list[int]) -> int:
            if len(text) == len(CYCLE) + 30 and not killed:
                killed.append(len(passes.drafts))
                server.kill()
            if len(text) == len(CYCLE) + 60 and len(killed) == 1:
                killed.append(len(passes.drafts))
                server.start()
                until(lambda: draft_model.client.check(5.0).state == "serving")
            return goes_round(text)

        killed: list[int] = []
        assert passes.generate(CYCLE, 120, eventful) == undrafted(CYCLE, 120)
        assert any(passes.drafts[: killed[0]])
        assert not any(passes.drafts[killed[0] + 1 : killed[1]])
        assert any(passes.drafts[killed[1] + 1 :])


def test_the_log_counts_steps_alone_and_not_the_greeting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with DraftdDraftModel(VOCABULARY_SIZE, endpoint=f"ipc://{tmp_path}/nobody.sock", model="m") as draft_model:
        draft_model(np.array([1, 2, 3], np.intc))
    assert "draftd: 1 of 1 steps without drafts" in caplog.text


def test_no_id_beyond_the_vocabulary_is_drafted(engine: Engine, tmp_path: Path) -> None:
    with (
        zmq_served(engine, tmp_path) as endpoint,
        DraftdDraftModel(16, endpoint=endpoint, model="m", deadline=30.0) as draft_model,
    ):
        assert draft_model(np.array([1, 2, 40, 1, 2], np.intc)).tolist() == []
        assert draft_model(np.array([1, 2, 3, 1, 2], np.intc)).tolist()[:2] == [3, 1]


def test_what_cannot_be_meant_is_named() -> None:
    with pytest.raises(ValueError, match="max_nodes is 0; draft at least 1 token"):
        DraftdDraftModel(VOCABULARY_SIZE, max_nodes=0, model="m")
    with pytest.raises(ValueError, match="max_nodes is '8'"):
        DraftdDraftModel(VOCABULARY_SIZE, max_nodes="8", model="m")
    with pytest.raises(ValueError, match="the model has no name of its own; give one with model="):
        DraftdDraftModel(VOCABULARY_SIZE)
