"""Which steps of an engine are timed."""

import numpy as np
import pytest

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.step_clock import StepClock
from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions
from draftd.engine import Engine
from draftd.wire import Frame
from tests.clock import Clock

PROMPT = [1, 2, 3, 4, 5, 1, 2, 3]  # goes on with 4, 5, 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def requests(engine: Engine, clock: Clock) -> EngineRequests:
    requests = EngineRequests(LocalClient(engine, vocabulary_size=100))
    requests.step_clock = StepClock(clock)
    return requests


def row(request_id: str, new: list[int], verified: int | None = None) -> EngineRow:
    text = np.array([*PROMPT, *new], np.int32)
    return EngineRow(request_id, text, len(PROMPT), 3, verified, OpenOptions(shape="chain"))


def told(frames: list[Frame]) -> tuple[int, int]:
    """Microseconds and width of the step that the last message tells of; zeros: it tells of none."""
    return frames[-1].step.step_micros, frames[-1].step.step_width


def test_a_step_is_timed_from_the_drafts_to_the_next_question(
    requests: EngineRequests, frames: list[Frame], clock: Clock
) -> None:
    requests.step([row("a", []), row("b", [])])
    assert told(frames) == (0, 0)
    clock.now += 0.004
    requests.step([row("a", [4, 5], verified=2), row("b", [4])])
    assert told(frames) == (4000, 2 + 2 + 3)  # a root each, two nodes of a's draft, all three of b's


def test_a_step_with_another_request_is_not_timed(requests: EngineRequests, frames: list[Frame], clock: Clock) -> None:
    requests.step([row("a", [])])
    clock.now += 0.004
    requests.step([row("a", [4]), row("b", [4])])  # b's prefill was in it
    assert told(frames) == (0, 0)
    clock.now += 0.004
    requests.step([row("a", [4, 5])])  # what of b was in it nobody says
    assert told(frames) == (0, 0)
    clock.now += 0.001
    requests.step([row("a", [4, 5, 1])])
    assert told(frames)[0] == 1000


def test_a_step_in_which_a_request_got_nothing_is_not_timed(
    requests: EngineRequests, frames: list[Frame], clock: Clock
) -> None:
    requests.step([row("a", []), row("b", [])])
    requests.step([row("a", [4]), row("b", [])])
    assert told(frames) == (0, 0)


def test_a_step_with_other_work_is_not_timed(requests: EngineRequests, frames: list[Frame], clock: Clock) -> None:
    requests.step([row("a", [])])
    requests.step_clock.forget()
    requests.step([row("a", [4])])
    assert told(frames) == (0, 0)


def test_a_pause_of_the_engine_is_no_step(requests: EngineRequests, frames: list[Frame], clock: Clock) -> None:
    requests.step([row("a", [])])
    clock.now += 72 * 60  # more than a message can say
    (draft,) = requests.step([row("a", [4])])
    assert len(draft) == 3
    assert told(frames) == (0, 0)


def test_a_refused_request_is_a_token_of_each_step_and_its_coming_and_going_are_noticed(
    requests: EngineRequests, frames: list[Frame], clock: Clock
) -> None:
    def refused(new: list[int]) -> EngineRow:
        return row("refused", new)._replace(options=OpenOptions(adapter="\ud800"))

    requests.step([row("a", [])])
    clock.now += 0.004
    requests.step([row("a", [4]), refused([])])
    assert told(frames) == (0, 0), "its prefill was in it"
    clock.now += 0.004
    requests.step([row("a", [4, 5], verified=1), refused([4])])
    assert told(frames) == (4000, 1 + 1 + 1)
    assert frames[-1].step.other_tokens == 1
    requests.keep({"a"})
    requests.step([row("a", [4, 5, 1])])
    assert told(frames) == (0, 0), "whether it was in it nobody says"
    assert frames[-1].step.other_tokens == 0


def test_other_tokens_are_told(requests: EngineRequests, frames: list[Frame]) -> None:
    requests.step([row("a", [])], other_tokens=512)
    assert frames[-1].step.other_tokens == 512
