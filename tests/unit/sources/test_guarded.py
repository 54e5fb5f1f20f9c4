"""A source that fails, hangs or answers nonsense costs its own drafts only."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from draftd.breaker import FAILURES_TO_OPEN, FIRST_PROBE_SECONDS
from draftd.observe.facts import REGISTRY
from draftd.sources import Batch, GuardedSource, Lane, Outcome, Proposals, Why, guarded
from tests.clock import Clock
from tests.faults.process import until
from tests.unit.sources.plain import Plain, nature

AMPLE, SHORT = 60.0, 0.01  # seconds


class Failing(Plain):
    fails = True

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        if self.fails:
            raise RuntimeError("out of order")
        return super().propose(batch, budget)

    def observe(self, outcome: Outcome) -> None:
        raise RuntimeError("deaf")


class Nonsense(Plain):
    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        return Proposals(np.cumsum(budget + 1, dtype=np.uint32), np.zeros(int((budget + 1).sum()), np.int32))


class Leaving(Plain):
    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        raise SystemExit("I am off")


class LeavingItsThread(Leaving):
    nature = nature(lane=Lane.THREAD)


class Hanging(Plain):
    nature = nature(lane=Lane.THREAD)

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.threads: set[int] = set()

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        self.threads.add(threading.get_ident())
        self.go_on.wait(AMPLE)
        return super().propose(batch, budget)

    def close(self) -> None:
        self.go_on.wait(AMPLE)


class Watched(Plain):
    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def observe(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def memory(self) -> int:
        return 100 + len(self.outcomes)


class Slow(Plain):
    nature = nature(call_micros=2e4)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    source = Hanging()
    yield source
    source.go_on.set()


def batch(*requests: int, start: int = 0, tokens: int = 2) -> Batch:
    rows = len(requests)
    ends = np.arange(tokens, (rows + 1) * tokens, tokens, dtype=np.uint32)[:rows]
    return Batch(
        np.array(requests, np.uint64), np.full(rows, start, np.uint32), ends, np.zeros(rows * tokens, np.int32)
    )


def ended(*requests: int) -> Outcome:
    none = np.array([], np.uint16)
    return Outcome(np.array([], np.uint64), none, none, np.array(requests, np.uint64))


def ask(source: GuardedSource, asked: Batch, seconds: float = AMPLE) -> Why:
    return source.ask(asked, np.full(len(asked.request), 4, np.uint32), seconds)[1]


def calls(source: str, why: Why) -> float:
    return REGISTRY.get_sample_value("draftd_source_calls_total", {"source": source, "outcome": why}) or 0.0


def test_an_answer_comes_back_as_it_is_and_is_counted(clock: Clock) -> None:
    source = GuardedSource("answering", Plain(), clock)
    proposals, why = source.ask(batch(1, 2), np.array([4, 0], np.uint32), AMPLE)
    assert proposals is not None
    assert (proposals.node_end.tolist(), proposals.tokens.tolist(), why) == ([1, 1], [7], Why.ANSWERED)
    assert calls("answering", Why.ANSWERED) == 1
    assert REGISTRY.get_sample_value("draftd_source_nodes_total", {"source": "answering"}) == 1


def test_a_source_is_asked_for_the_text_behind_what_it_was_shown(clock: Clock) -> None:
    source = GuardedSource("reading", Plain(), clock)
    requests = np.array([1, 2], np.uint64)
    assert source.starts(requests).tolist() == [0, 0]
    ask(source, batch(1, tokens=5))
    ask(source, batch(1, start=5, tokens=3))
    assert source.starts(requests).tolist() == [8, 0]


def test_a_source_that_fails_is_left_alone_and_tried_again(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()
    source = GuardedSource("failing", failing, clock)
    assert [ask(source, batch(1)) for _ in range(FAILURES_TO_OPEN)] == [Why.FAILED] * FAILURES_TO_OPEN
    assert "draft source failing: failed, its drafts are left out: out of order" in caplog.text
    failing.fails = False
    assert ask(source, batch(1)) is Why.OFF
    clock.now += FIRST_PROBE_SECONDS
    assert ask(source, batch(1)) is Why.ANSWERED
    assert ask(source, batch(1)) is Why.ANSWERED
    assert (calls("failing", Why.FAILED), calls("failing", Why.OFF)) == (FAILURES_TO_OPEN, 1)


def test_after_a_failure_texts_are_shown_from_their_beginnings(clock: Clock) -> None:
    failing = Failing()
    failing.fails = False
    source = GuardedSource("forgetful", failing, clock)
    ask(source, batch(1, 2))
    failing.fails = True
    ask(source, batch(1, start=2))
    assert source.starts(np.array([1, 2], np.uint64)).tolist() == [0, 2]


def test_an_answer_that_can_not_be_meant_is_a_failure(clock: Clock) -> None:
    source = GuardedSource("nonsense", Nonsense(), clock)
    assert source.ask(batch(1), np.array([4], np.uint32), AMPLE) == (None, Why.FAILED)


@pytest.mark.parametrize("leaving", [Leaving, LeavingItsThread])
def test_a_source_that_wants_the_process_to_end_fails_alone(clock: Clock, leaving: type[Leaving]) -> None:
    source = GuardedSource("leaving", leaving(), clock)
    assert [ask(source, batch(1)), ask(source, batch(1))] == [Why.FAILED, Why.FAILED]


def test_a_source_that_hangs_is_not_waited_for(clock: Clock, hanging: Hanging) -> None:
    source = GuardedSource("hanging", hanging, clock)
    assert ask(source, batch(1), SHORT) is Why.LATE
    assert ask(source, batch(2)) is Why.LATE  # whatever time there is: it is still at the first batch
    hanging.go_on.set()
    until(lambda: ask(source, batch(1)) is Why.ANSWERED)
    assert len(hanging.threads) == 1
    assert threading.get_ident() not in hanging.threads


def test_a_native_call_that_took_too_long_is_not_used(clock: Clock) -> None:
    source = GuardedSource("lagging", Plain(), clock)
    assert ask(source, batch(1), 1e-9) is Why.LATE


def test_a_source_that_takes_longer_than_is_left_is_not_asked(clock: Clock) -> None:
    source = GuardedSource("slow", Slow(), clock)
    assert ask(source, batch(1), SHORT) is Why.NO_TIME
    assert ask(source, batch(1), AMPLE) is Why.ANSWERED
    assert source.starts(np.array([1], np.uint64)).tolist() == [2]


def test_two_steps_do_not_ask_at_once(clock: Clock, hanging: Hanging) -> None:
    source = GuardedSource("wanted", hanging, clock)
    first: list[Why] = []
    other = threading.Thread(target=lambda: first.append(ask(source, batch(1))))
    other.start()
    until(lambda: hanging.threads)
    assert ask(source, batch(2), SHORT) is Why.BUSY
    hanging.go_on.set()
    other.join(AMPLE)
    assert first == [Why.ANSWERED]


def test_a_source_hears_of_ends_only_where_it_was_shown_the_request(clock: Clock) -> None:
    watched = Watched()
    source = GuardedSource("watched", watched, clock)
    ask(source, batch(1, 2))
    source.observe(ended(2, 3))
    source.observe(ended(3))
    assert [outcome.ended.tolist() for outcome in watched.outcomes] == [[2]]
    assert source.starts(np.array([1, 2], np.uint64)).tolist() == [2, 0]
    assert source.memory == 101


def test_a_source_that_fails_to_hear_fails_alone(clock: Clock) -> None:
    failing = Failing()
    failing.fails = False
    source = GuardedSource("deaf", failing, clock)
    ask(source, batch(1))
    source.observe(ended(1))
    assert calls("deaf", Why.FAILED) == 1


def test_a_source_that_hangs_keeps_nothing_from_ending(
    clock: Clock, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "CLOSE_SECONDS", SHORT)
    source = GuardedSource("closing", hanging, clock)
    source.close()
    assert calls("closing", Why.FAILED) == 1
