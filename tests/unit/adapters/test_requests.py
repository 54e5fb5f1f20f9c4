"""What an engine states each step, as one message to a real engine of drafts in the same process."""

from typing import Any

import numpy as np
import pytest

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.client import Reason
from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import ALL_VERIFIED, Frame, Shape

PROMPT = [1, 2, 3, 4, 5, 1, 2, 3]  # goes on with 4, 5, 1
CHAIN = OpenOptions(shape="chain")


@pytest.fixture
def requests(engine: Engine) -> EngineRequests:
    return EngineRequests(LocalClient(engine, vocabulary_size=100))


def row(text: list[int], request_id: str = "r", prompt_length: int = len(PROMPT), **said: int) -> EngineRow:
    return EngineRow(
        request_id, np.array(text, np.int32), prompt_length, said.pop("max_nodes", 3), options=CHAIN, **said
    )


def test_a_step_that_opens_commits_and_closes_is_one_message(requests: EngineRequests, frames: list[Frame]) -> None:
    requests.step([row(PROMPT, "gone")])
    frames.clear()
    requests.keep({"a", "b"})
    drafts = requests.step([row([*PROMPT, 4], "a"), row([*PROMPT, 4, 5], "b")])
    assert [draft.tokens.tolist() for draft in drafts] == [[5, 1, 2], [1, 2, 3]]
    (frame,) = frames
    assert len(frame.step.close.request) == 4
    assert [sync.request_id for sync in frame.step.sync] == ["a", "b"]
    assert "gone" not in requests
    assert "a" in requests


def test_only_what_is_new_is_committed(requests: EngineRequests, frames: list[Frame]) -> None:
    requests.step([row(PROMPT)])
    requests.step([row([*PROMPT, 4, 5])])
    assert np.frombuffer(frames[-1].step.commit.tokens, "<i4").tolist() == [4, 5]
    assert not frames[-1].step.sync


def test_the_first_row_of_a_request_that_another_engine_began_states_all_of_it(requests: EngineRequests) -> None:
    (draft,) = requests.step([row([*PROMPT, 4, 5, 1], prompt_length=5)])
    assert (draft.tokens.tolist(), draft.base) == ([2, 3, 4], len(PROMPT) + 3)


@pytest.mark.parametrize(
    ("text", "prompt_length"), [([*PROMPT, 4], len(PROMPT)), ([*PROMPT, 4, 5, 1, 2, 3], len(PROMPT) + 2)]
)
def test_what_does_not_go_on_from_the_known_text_opens_again(
    requests: EngineRequests, frames: list[Frame], text: list[int], prompt_length: int
) -> None:
    requests.step([row([*PROMPT, 4, 5, 1])])
    (draft,) = requests.step([row(text, prompt_length=prompt_length)._replace(options=None)])
    assert draft.tokens.tolist() == ([5, 1, 2] if text[-1] == 4 else [4, 5, 1])
    (sync,) = frames[-1].step.sync
    assert (sync.epoch, sync.shape, len(sync.prompt)) == (2, Shape.SHAPE_CHAIN, 4 * prompt_length)


def test_each_row_gets_no_more_nodes_than_it_wants(requests: EngineRequests, frames: list[Frame]) -> None:
    drafts = requests.step([row(PROMPT, name, max_nodes=most) for name, most in [("a", 0), ("b", 1), ("c", 3)]])
    assert [draft.tokens.tolist() for draft in drafts] == [[], [4], [4, 5, 1]]
    assert np.frombuffer(frames[-1].step.commit.max_nodes, "<u2").tolist() == [0, 1, 3], "nothing is drafted to be cut"
    (draft,) = requests.step([row([*PROMPT, 4], "a", max_nodes=0)])
    assert len(draft) == 0


def test_figures_count_what_went_through_the_target_alone(requests: EngineRequests) -> None:
    requests.step([row(PROMPT)])
    requests.step([row([*PROMPT, 4, 5], verified=2)])  # of three; one accepted
    assert vars_of(requests) == (2, 6, 2, 1)
    requests.step([row([*PROMPT, 4, 5, 1, 2, 3, 4])])  # all three, and all accepted
    assert vars_of(requests) == (3, 9, 5, 4)
    requests.step([row([*PROMPT, 4, 5, 1, 2, 3, 4])])  # nothing new: nothing was verified
    assert vars_of(requests) == (4, 12, 5, 4)
    assert repr(requests) == "EngineRequests(1 open, Figures(steps=4, drafted=12, verified=5, accepted=4))"


def test_no_more_went_through_than_was_drafted(requests: EngineRequests) -> None:
    requests.step([row(PROMPT)])
    requests.step([row([*PROMPT, 4, 5], verified=9)])
    assert vars_of(requests) == (2, 6, 3, 1)


def test_no_more_was_accepted_than_went_through(requests: EngineRequests) -> None:
    """A grammar may give an engine tokens that nobody drafted."""
    requests.step([row(PROMPT)])
    requests.step([row([*PROMPT, 4, 5, 1, 2], verified=1)])
    assert vars_of(requests) == (2, 6, 1, 1)


def test_adapters_are_counted_apart(requests: EngineRequests) -> None:
    requests.step([row(PROMPT, "a")._replace(options=OpenOptions(adapter="lora")), row(PROMPT, "b")])
    requests.step([row([*PROMPT, 4, 5], "a"), row([*PROMPT, 9], "b")])
    accepted = {adapter: figures.accepted for adapter, figures in requests.figures_of.items()}
    assert accepted == {"lora": 1, "": 0}
    assert requests.figures.steps == 4


def vars_of(requests: EngineRequests) -> tuple[int, int, int, int]:
    figures = requests.figures
    return figures.steps, figures.drafted, figures.verified, figures.accepted


class GenerousClient(LocalClient):
    """Of a drafter that gives every row as much as the one that wants most."""

    def step(self, commits: Any, budget: Any = None, max_nodes: Any = 0, **said: Any) -> Any:
        return super().step(commits, budget, max(max_nodes.values()), **said)


def test_a_draft_that_was_cut_counts_for_the_drafter_as_far_as_it_was_used(engine: Engine, frames: list[Frame]) -> None:
    requests = EngineRequests(GenerousClient(engine, vocabulary_size=100))
    requests.step([row(PROMPT, "cut", max_nodes=1), row(PROMPT, "whole")])
    requests.step([row([*PROMPT, 4], "cut"), row([*PROMPT, 4], "whole")])
    assert np.frombuffer(frames[-1].step.commit.verified, "<i4").tolist() == [1, ALL_VERIFIED]


def test_what_is_finished_is_committed_and_closed_without_a_step(requests: EngineRequests, frames: list[Frame]) -> None:
    requests.step([row(PROMPT)])
    frames.clear()
    requests.finish(row([*PROMPT, 4, 5, 9], verified=2))
    committed, closed = frames
    assert np.frombuffer(committed.step.commit.tokens, "<i4").tolist() == [4, 5, 9]
    assert len(closed.step.close.request) == 4
    assert vars_of(requests) == (1, 3, 2, 2)
    assert "r" not in requests


def test_a_closed_id_opens_anew(requests: EngineRequests) -> None:
    requests.step([row(PROMPT)])
    requests.keep(())
    (draft,) = requests.step([row([7, 8, 9, 7, 8], prompt_length=5)])
    assert draft.tokens.tolist() == [9, 7, 8]


def test_what_is_dropped_is_closed_and_nothing_else(requests: EngineRequests, frames: list[Frame]) -> None:
    refused = row(PROMPT, "refused")._replace(options=OpenOptions(adapter="\ud800"))
    requests.step([row(PROMPT, "a"), row(PROMPT, "b"), refused])
    frames.clear()
    requests.drop(["a", "refused", "never open"])
    assert [name in requests for name in ("a", "b", "refused")] == [False, True, False]
    assert frames == [], "it waits for the next message"
    requests.step([row([*PROMPT, 4], "b")])
    assert len(frames[0].step.close.request) == 4


def test_a_lost_drafter_is_told_again_of_all_requests(requests: EngineRequests, engine: Engine) -> None:
    requests.step([row(PROMPT, "a"), row(PROMPT, "b")])
    other = Engine(EngineSettings())
    requests.client._line._channel._engine = other  # what a restart looks like
    drafts = requests.step([row([*PROMPT, 4], "a"), row([*PROMPT, 4, 5], "b")])
    assert [draft.tokens.tolist() for draft in drafts] == [[5, 1, 2], [1, 2, 3]]
    other.close()


@pytest.mark.parametrize(
    "wrong", [{"max_new_tokens": 9.5}, {"adapter": "\ud800"}, {"shade": "none"}], ids=["limit", "adapter", "unknown"]
)
def test_a_request_that_can_not_be_opened_costs_its_own_row_alone(
    requests: EngineRequests, frames: list[Frame], wrong: OpenOptions
) -> None:
    for text in (PROMPT, [*PROMPT, 4]):
        refused, served = requests.step([row(text, "wrong")._replace(options=wrong), row(text, "r")])
        assert (len(refused), refused.reason, refused.base) == (0, Reason.REFUSED, len(text))
        assert len(served) == 3
    health = requests.client.health()
    assert health.counters.row_errors == 1, "it is tried once"
    assert health.last_error.startswith("open('wrong')")
    assert "wrong" in requests
    assert requests.figures.steps == 2
    frames.clear()
    requests.finish(row([*PROMPT, 4, 5], "wrong"))
    assert frames == []
    assert "wrong" not in requests


def test_a_refused_id_opens_once_it_was_over(requests: EngineRequests) -> None:
    wrong = OpenOptions(adapter="\ud800")
    requests.step([row(PROMPT)._replace(options=wrong)])
    requests.keep({"r"})
    assert len(requests.step([row(PROMPT)])[0]) == 0
    requests.keep(())
    assert len(requests.step([row(PROMPT)])[0]) == 3


@pytest.mark.parametrize("prompt_length", [len(PROMPT), len(PROMPT) - 1])
def test_of_rows_of_one_id_the_first_is_drafted_for(requests: EngineRequests, prompt_length: int) -> None:
    for _ in range(2):
        again = row([*PROMPT, 4], prompt_length=prompt_length)
        drafts = requests.step([row(PROMPT), again, row(PROMPT, "other")])
        assert [draft.tokens.tolist() for draft in drafts] == [[4, 5, 1], [], [4, 5, 1]]
    assert requests.client.health().counters.syncs == 2
    assert requests.figures.steps == 4


def test_ids_that_look_alike_when_spelt_out_are_two(requests: EngineRequests, frames: list[Frame]) -> None:
    drafts = requests.step([row(PROMPT, "\ud800"), row([*PROMPT, 4], r"\ud800")])
    assert [draft.tokens.tolist() for draft in drafts] == [[4, 5, 1], [5, 1, 2]]
    assert [sync.request_id for sync in frames[-1].step.sync] == [r"\ud800", r"\\ud800"]


def test_no_rows_are_no_trouble(requests: EngineRequests) -> None:
    assert requests.step([]) == []


def test_a_closed_client_gives_empty_drafts(requests: EngineRequests) -> None:
    requests.client.close()
    (draft,) = requests.step([row(PROMPT)])
    assert (len(draft), draft.reason) == (0, Reason.CLOSED)
