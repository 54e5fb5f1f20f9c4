"""Windows for whoever matches by itself: each comes once, and what is taken away is said."""

from draftd.client.local import LocalClient
from draftd.client.tape import NewWindows
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import Namespace
from tests.segments import sealed

HERE = Namespace(tenant="here", model="m")
DOCUMENT, OTHER = list(range(100, 200)), list(range(300, 400))


class Matcher:
    """A request whose windows are handed over."""

    def __init__(self, engine: Engine) -> None:
        self.client = LocalClient(engine, HERE)
        self.request = self.client.open("r", [1, 2], wait=True)

    def step(self, *tokens: int) -> NewWindows:
        return self.client.windows_ahead({self.request: tokens}, 3, tapes=4)[self.request]


def windows(new: NewWindows) -> list[list[list[int]]]:
    return [[window.tolist() for window in arrival] for arrival in new.arrivals]


def test_each_arrival_is_handed_over_once_with_the_draft_last(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    matcher = Matcher(engine)
    first = matcher.step(120)
    assert first == NewWindows([], starts=True)
    second = matcher.step(121)
    assert not second.starts
    assert windows(second) == [[list(range(105, 169)), [1, 2, *range(120, 127)]]], "6 nodes: twice those wanted"
    third = matcher.step(122)
    assert [arrival[0][:16][-1] for arrival in windows(third)] == [121]


def test_several_arrivals_since_the_last_call_come_together_the_oldest_first(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    matcher = Matcher(engine)
    matcher.step(120)
    for token in range(121, 131):
        matcher.client.step_ahead({matcher.request: [token]}, tapes=4)
    arrivals = windows(matcher.step(131))
    assert [arrival[0][:16][-1] for arrival in arrivals] == list(range(123, 131)), "the last eight"


def test_what_is_left_comes_once_more_when_something_is_taken_away(engine: Engine) -> None:
    engine.publish_corpus(HERE, "goes", [sealed([DOCUMENT])])
    engine.publish_corpus(HERE, "stays", [sealed([OTHER])])
    matcher = Matcher(engine)
    matcher.step(120)
    matcher.step(320)
    matcher.step(321)
    engine.withdraw_corpus(HERE, "goes")
    matcher.step(322)
    after = matcher.step(323)
    assert after.starts
    assert [window[0] >= 300 for arrival in windows(after) for window in arrival[:1]] == [True] * len(after.arrivals)
    assert len(after.arrivals) > 1
    assert not matcher.step(324).starts


def test_windows_of_a_drafter_that_restarted_are_to_be_forgotten(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    matcher = Matcher(engine)
    matcher.step(120)
    assert matcher.step(121).arrivals
    restarted = Engine(EngineSettings())
    matcher.client._line._channel._engine = restarted  # type: ignore[attr-defined]
    matcher.step(122)  # it says that it knows nobody
    assert matcher.step(123) == NewWindows([], starts=True)
    restarted.close()


def test_nothing_is_handed_over_for_a_closed_request(engine: Engine) -> None:
    matcher = Matcher(engine)
    matcher.request.close()
    assert matcher.client.windows_ahead({matcher.request: [1]}, 3, tapes=4) == {}
