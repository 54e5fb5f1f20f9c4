"""A source that fails, hangs or answers nonsense when it is asked costs its own drafts only."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from draftd.breaker import FAILURES_TO_OPEN, FIRST_PROBE_SECONDS
from draftd.observe.facts import REGISTRY
from draftd.sources import Batch, GuardedSource, Lane, Proposals, Why, lanes
from tests.clock import Clock
from tests.faults.process import until
from tests.unit.sources.asking import (
    AMPLE,
    SHORT,
    Hanging,
    HangsWhileItHears,
    Panic,
    ask,
    batch,
    calls,
    ended,
    until_told,
)
from tests.unit.sources.plain import Plain, nature


class Failing(Plain):
    fails = True

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        if self.fails:
            raise RuntimeError("out of order")
        return super().propose(batch, budget)


class Nonsense(Plain):
    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        return Proposals(np.cumsum(budget + 1, dtype=np.uint32), np.zeros(int((budget + 1).sum()), np.int32))


class Raising(Plain):
    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        raise self.kind("out of order")


class RaisingOnItsThread(Raising):
    nature = nature(lane=Lane.THREAD)


class OvertakenFuture(Future[Any]):
    """Its answer comes just as the time for it is up."""

    def exception(self, timeout: float | None = None) -> BaseException | None:
        super().exception(AMPLE)
        raise TimeoutError


class Slow(Plain):
    nature = nature(call_micros=2e4)


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


@pytest.mark.parametrize("kind", [Panic, SystemExit, GeneratorExit, asyncio.CancelledError, TimeoutError])
@pytest.mark.parametrize("raising", [Raising, RaisingOnItsThread])
def test_whatever_a_source_raises_it_fails_alone(
    clock: Clock, raising: type[Raising], kind: type[BaseException]
) -> None:
    source = GuardedSource("raising", raising(kind), clock)
    assert [ask(source, batch(1)), ask(source, batch(1))] == [Why.FAILED, Why.FAILED]


def test_only_a_user_interrupts_and_only_the_thread_that_asks(clock: Clock) -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(GuardedSource("interrupted", Raising(KeyboardInterrupt), clock), batch(1))
    assert ask(GuardedSource("elsewhere", RaisingOnItsThread(KeyboardInterrupt), clock), batch(1)) is Why.FAILED


def test_a_source_that_hangs_is_not_waited_for(clock: Clock, hanging: Hanging) -> None:
    source = GuardedSource("hanging", hanging, clock)
    assert ask(source, batch(1), SHORT) is Why.LATE
    assert ask(source, batch(2)) is Why.LATE  # whatever time there is: it is still at the first batch
    hanging.go_on.set()
    until_told(source, clock, batch(1), Why.ANSWERED)
    assert len(hanging.threads) == 1
    assert threading.get_ident() not in hanging.threads


def test_an_answer_that_comes_as_its_time_is_up_is_late(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    source = GuardedSource("overtaken", RaisingOnItsThread(RuntimeError), clock)
    monkeypatch.setattr(lanes, "Future", OvertakenFuture)
    assert ask(source, batch(1)) is Why.LATE


def test_a_native_call_that_took_too_long_is_not_used_but_counts_as_shown(clock: Clock) -> None:
    source = GuardedSource("lagging", Plain(), clock)
    assert ask(source, batch(1), 1e-9) is Why.LATE
    assert source.starts(np.array([1], np.uint64)).tolist() == [2]


def test_what_was_shown_in_a_late_call_counts_when_it_has_ended_well(clock: Clock, hanging: Hanging) -> None:
    source = GuardedSource("tardy", hanging, clock)
    ask(source, batch(1, 2), SHORT)
    requests = np.array([1, 2], np.uint64)
    assert source.starts(requests).tolist() == [0, 0]
    source.observe(ended(2))
    hanging.go_on.set()
    until(lambda: source.starts(requests).tolist() == [2, 0])


def test_a_late_call_that_fails_at_last_shows_nothing(clock: Clock) -> None:
    class Spoilt(Hanging):
        def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
            nodes = super().propose(batch, budget).node_end
            return Proposals(nodes, np.full(len(nodes), -1, np.int32))

    spoilt = Spoilt()
    source = GuardedSource("spoilt", spoilt, clock)
    ask(source, batch(1), SHORT)
    spoilt.go_on.set()
    until_told(source, clock, batch(2), Why.FAILED)
    assert source.starts(np.array([1], np.uint64)).tolist() == [0]


def test_a_call_that_could_not_begin_shows_nothing_and_takes_nothing_back(clock: Clock) -> None:
    class Hesitating(HangsWhileItHears):
        def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
            if 2 in batch.request:
                self.go_on.wait(AMPLE)
            return super().propose(batch, budget)

    hesitating = Hesitating()
    source = GuardedSource("hesitating", hesitating, clock)
    ask(source, batch(1))
    assert ask(source, batch(2), SHORT) is Why.LATE
    assert ask(source, batch(1, 3)) is Why.LATE
    assert source.starts(np.array([1, 3], np.uint64)).tolist() == [2, 0]
    hesitating.go_on.set()
    until_told(source, clock, batch(4), Why.ANSWERED)
    source.observe(ended(1, 2, 3))
    ask(source, batch(4))
    assert hesitating.heard_ends() == [1, 2]


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
    assert ask(source, batch(2)) is Why.BUSY
    hanging.go_on.set()
    other.join(AMPLE)
    assert first == [Why.ANSWERED]
