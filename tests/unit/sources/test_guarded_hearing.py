"""What became of proposals and which requests ended reaches a source, or waits for it; so does its close."""

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from draftd.breaker import FAILURES_TO_OPEN, FIRST_PROBE_SECONDS
from draftd.observe.facts import REGISTRY
from draftd.sources import Batch, GuardedSource, Lane, Outcome, Proposals, Why, guarded
from draftd.sources.lanes import MOST_WAITING
from tests.clock import Clock
from tests.faults.process import until
from tests.unit.sources.asking import (
    AMPLE,
    SHORT,
    Hanging,
    HangsWhileItHears,
    Panic,
    Watched,
    ask,
    batch,
    calls,
    ended,
    judged,
    until_told,
)
from tests.unit.sources.plain import Plain, nature


class Deaf(Watched):
    kind: type[BaseException] = RuntimeError
    hears = False

    def observe(self, outcome: Outcome) -> None:
        if not self.hears:
            raise self.kind("deaf")
        super().observe(outcome)


class DeafOnItsThread(Deaf):
    nature = nature(lane=Lane.THREAD)


def test_a_source_hears_of_ends_only_where_it_was_shown_the_request(clock: Clock) -> None:
    watched = Watched()
    source = GuardedSource("watched", watched, clock)
    ask(source, batch(1, 2))
    source.observe(ended(2, 3))
    source.observe(ended(3))
    assert [outcome.ended.tolist() for outcome in watched.outcomes] == [[2]]
    assert source.starts(np.array([1, 2], np.uint64)).tolist() == [2, 0]
    assert REGISTRY.get_sample_value("draftd_source_bytes", {"source": "watched"}) == 101


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
    assert [(it.request.tolist(), it.ended.tolist()) for it in hanging.outcomes] == [([], [1, 2]), ([3], [])]


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


class HangsWhileItIsAsked(Watched):
    nature = nature(lane=Lane.THREAD)

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.go_on = threading.Event(), threading.Event()

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        self.is_asked.set()
        self.go_on.wait(AMPLE)
        return super().propose(batch, budget)


def test_who_tells_does_not_wait_for_a_call_under_way_and_the_end_comes_behind_it() -> None:
    hanging = HangsWhileItIsAsked()
    source = GuardedSource("hanging", hanging)
    asking = threading.Thread(target=ask, args=(source, batch(1)))
    asking.start()
    assert hanging.is_asked.wait(AMPLE)
    source.observe(ended(1))
    assert hanging.outcomes == []
    hanging.go_on.set()
    asking.join(AMPLE)
    until(lambda: hanging.heard_ends() == [1])
    source.close()


def test_the_bytes_of_all_instances_are_counted_until_they_are_closed() -> None:
    def bytes_held() -> float | None:
        return REGISTRY.get_sample_value("draftd_source_bytes", {"source": "two"})

    one, other = GuardedSource("two", Watched()), GuardedSource("two", Watched())
    for source in (one, other):
        ask(source, batch(1))
    assert bytes_held() == 200
    one.close()
    assert bytes_held() == 100
    other.close()
    assert bytes_held() == 0
