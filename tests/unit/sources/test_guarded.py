"""A source that fails, hangs or answers nonsense costs its own drafts only."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from draftd.breaker import FAILURES_TO_OPEN, FIRST_PROBE_SECONDS, LONGEST_PROBE_SECONDS
from draftd.observe.facts import REGISTRY
from draftd.sources import Batch, GuardedSource, Lane, Outcome, Proposals, Why, guarded, lanes
from draftd.sources.lanes import MOST_WAITING
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


class Panic(BaseException):
    """As those of Rust's bindings are."""


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


class Hanging(Plain):
    nature = nature(lane=Lane.THREAD)

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.threads: set[int] = set()
        self.closed = False

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        self.threads.add(threading.get_ident())
        self.go_on.wait(AMPLE)
        return super().propose(batch, budget)

    def close(self) -> None:
        self.go_on.wait(AMPLE)
        self.closed = True


class Watched(Plain):
    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def observe(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def memory(self) -> int:
        return 100 + len(self.outcomes)

    def heard_ends(self) -> list[int]:
        return [request for outcome in self.outcomes for request in outcome.ended.tolist()]


class Deaf(Watched):
    kind: type[BaseException] = RuntimeError
    hears = False

    def observe(self, outcome: Outcome) -> None:
        if not self.hears:
            raise self.kind("deaf")
        super().observe(outcome)


class DeafOnItsThread(Deaf):
    nature = nature(lane=Lane.THREAD)


class HangsWhileItHears(Watched):
    nature = nature(lane=Lane.THREAD)

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def observe(self, outcome: Outcome) -> None:
        self.go_on.wait(AMPLE)
        super().observe(outcome)


class OvertakenFuture(Future[Any]):
    """Its answer comes just as the time for it is up."""

    def exception(self, timeout: float | None = None) -> BaseException | None:
        super().exception(AMPLE)
        raise TimeoutError


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


def until_told(source: GuardedSource, clock: Clock, asked: Batch, why: Why) -> None:
    """Asks until that is what becomes of it, however often the circuit breaker opens meanwhile."""

    def told() -> bool:
        clock.now += LONGEST_PROBE_SECONDS
        return ask(source, asked) is why

    until(told)


def judged(request: int, *ends: int) -> Outcome:
    return Outcome(
        np.array([request], np.uint64), np.array([1], np.uint16), np.array([1], np.uint16), np.array(ends, np.uint64)
    )


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


@pytest.mark.parametrize("deaf", [Deaf, DeafOnItsThread])
def test_a_source_that_can_not_hear_still_proposes(clock: Clock, deaf: type[Deaf]) -> None:
    source = GuardedSource(deaf.__name__, deaf(), clock)
    deaf.kind = Panic
    ask(source, batch(1))
    source.observe(ended(1))
    assert ask(source, batch(2)) is Why.ANSWERED
    assert calls(deaf.__name__, Why.FAILED) == 1


def test_a_source_that_never_hears_is_told_seldom_and_of_every_end_at_last(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    deaf = Deaf()
    source = GuardedSource("stubborn", deaf, clock)
    requests = range(5 * FAILURES_TO_OPEN)
    for request in requests:
        assert ask(source, batch(request)) is Why.ANSWERED
        source.observe(judged(request, request))
    assert calls("stubborn", Why.FAILED) == len(caplog.records) == FAILURES_TO_OPEN
    deaf.hears = True
    clock.now += FIRST_PROBE_SECONDS
    source.observe(ended())
    source.observe(judged(99))
    assert deaf.heard_ends() == list(requests[FAILURES_TO_OPEN:])
    assert [outcome.request.tolist() for outcome in deaf.outcomes] == [[], [99]]


def test_what_waits_for_a_source_that_hangs_is_bounded_and_no_end_is_lost(clock: Clock) -> None:
    hanging = HangsWhileItHears()
    source = GuardedSource("swamped", hanging, clock)
    requests = range(3 * MOST_WAITING)
    ask(source, batch(*requests))
    for request in requests:
        source.observe(judged(request, request))
    hanging.go_on.set()
    assert ask(source, batch(999)) is Why.ANSWERED
    source.observe(ended())
    assert ask(source, batch(999)) is Why.ANSWERED  # so that it has heard all
    assert hanging.heard_ends() == list(requests)
    assert MOST_WAITING <= len(hanging.outcomes) <= MOST_WAITING + 2


def test_nothing_is_put_behind_a_call_that_hangs(clock: Clock) -> None:
    class HangsOnce(HangsWhileItHears):
        def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
            self.go_on.wait(AMPLE)
            return super().propose(batch, budget)

    hanging = HangsOnce()
    source = GuardedSource("stuck", hanging, clock)
    ask(source, batch(1, 2), SHORT)
    source.observe(judged(1, 1))
    source.observe(judged(2, 2))
    hanging.go_on.set()
    until_told(source, clock, batch(3), Why.ANSWERED)
    source.observe(judged(3))
    ask(source, batch(3))
    assert [(it.request.tolist(), it.ended.tolist()) for it in hanging.outcomes] == [([3], [1, 2])]


def test_a_source_that_hangs_keeps_nothing_from_ending(
    clock: Clock, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "CLOSE_SECONDS", SHORT)
    source = GuardedSource("closing", hanging, clock)
    source.close()
    assert calls("closing", Why.FAILED) == 1


def test_a_source_that_is_late_is_closed_when_its_call_ends(
    clock: Clock, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "CLOSE_SECONDS", SHORT)
    source = GuardedSource("parting", hanging, clock)
    assert ask(source, batch(1), SHORT) is Why.LATE
    source.close()
    hanging.go_on.set()
    until(lambda: hanging.closed)


@pytest.mark.parametrize("lane", Lane)
def test_a_source_that_fails_to_close_fails_alone(clock: Clock, lane: Lane) -> None:
    class Clinging(Plain):
        nature = nature(lane=lane)

        def close(self) -> None:
            raise Panic("no")

    name = f"clinging {lane.value}"
    GuardedSource(name, Clinging(), clock).close()
    assert calls(name, Why.FAILED) == 1
