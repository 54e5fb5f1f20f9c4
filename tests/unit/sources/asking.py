"""What tests of guarded sources share: ways to ask one, and sources that hang or remember."""

import threading

import numpy as np
from numpy.typing import NDArray

from draftd.breaker import LONGEST_PROBE_SECONDS
from draftd.observe.facts import REGISTRY
from draftd.sources import Batch, GuardedSource, Lane, Outcome, Proposals, Why
from tests.clock import Clock
from tests.faults.process import until
from tests.unit.sources.plain import Plain, nature

AMPLE, SHORT = 60.0, 0.01  # seconds


class Panic(BaseException):
    """As those of Rust's bindings are."""


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


class HangsWhileItHears(Watched):
    nature = nature(lane=Lane.THREAD)

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def observe(self, outcome: Outcome) -> None:
        self.go_on.wait(AMPLE)
        super().observe(outcome)


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
