"""A source as the step asks it: whatever it does, it costs its own drafts only."""

import time
from collections.abc import Callable
from enum import StrEnum
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from draftd.breaker import CircuitBreaker
from draftd.observe import facts
from draftd.sources.checks import require_answer
from draftd.sources.lanes import CallerLane, Late, OwnThreadLane, SourceLane
from draftd.sources.source import Batch, Lane, Outcome, Proposals, Source, begins

CLOSE_SECONDS = 2.0
WHATEVER = (Exception, SystemExit)  # a plug-in may raise anything, and fails alone


class Why(StrEnum):
    """What became of a call; also the label of the metric."""

    ANSWERED = "answered"
    LATE = "late"  # no answer within the time that was left
    FAILED = "failed"  # it raised, or answered what can't be meant
    NO_TIME = "no_time"  # not asked: by its own word it takes longer than is left
    OFF = "off"  # not asked: the circuit breaker is open
    BUSY = "busy"  # not asked: another step was


class GuardedSource:
    """Deadline, circuit breaker, checked answers, and what the source knows of which text. Thread-safe."""

    def __init__(self, name: str, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.nature = source.nature
        self.memory = 0
        """Bytes, as of the source's last call."""
        self._source = source
        self._clock = clock
        self._lane: SourceLane = CallerLane() if source.nature.lane is Lane.NATIVE else OwnThreadLane(name)
        self._turn = Lock()  # one step at a time asks
        self._record = Lock()  # guards the breaker, which the source's own thread writes, too
        self._breaker = CircuitBreaker()
        self._shown: dict[int, int] = {}  # request to the tokens of it that the source surely has

    def starts(self, requests: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """From where on the text of each request has to be in the next batch, or from before."""
        return np.array([self._shown.get(request, 0) for request in requests.tolist()], np.uint32)

    def ask(self, batch: Batch, budget: NDArray[np.uint32], seconds: float) -> tuple[Proposals | None, Why]:
        """Proposals, with at most budget[i] nodes for row i, or why there are none. Takes `seconds` at most.

        Raises nothing that the source could be a reason for."""
        until = time.perf_counter() + seconds
        if self.nature.micros(len(budget)) / 1e6 > seconds:
            return self._not_asked(Why.NO_TIME)
        if not self._turn.acquire(timeout=max(seconds, 0.0)):
            return self._not_asked(Why.BUSY)
        try:
            with self._record:
                allowed = self._breaker.allows(self._clock())
            if not allowed:
                return self._not_asked(Why.OFF)
            return self._call(batch, budget, until - time.perf_counter())
        finally:
            self._turn.release()

    def _call(self, batch: Batch, budget: NDArray[np.uint32], seconds: float) -> tuple[Proposals | None, Why]:
        requests = batch.request.tolist()
        began = time.perf_counter()
        try:
            answer = self._lane.call(lambda: self._propose(batch, budget), seconds)
            proposals = require_answer(answer, self.nature, budget)
        except WHATEVER as error:
            # Nobody knows how much of the batch it took: it is shown these texts from their beginnings next time.
            self._shown.update(dict.fromkeys(requests, 0))
            why = Why.LATE if isinstance(error, Late) else Why.FAILED
            self._failed(why, error)
            return None, why
        ends = batch.start + batch.token_end - begins(batch.token_end)
        self._shown.update(zip(requests, ends.tolist(), strict=True))
        with self._record:
            self._breaker.succeeded()
        facts.source_called(self.name, Why.ANSWERED, len(proposals.tokens), time.perf_counter() - began)
        return proposals, Why.ANSWERED

    def observe(self, outcome: Outcome) -> None:
        """Passes it on; of the requests that ended, those that the source was ever shown."""
        with self._turn:
            ended = [request for request in outcome.ended.tolist() if self._shown.pop(request, None) is not None]
            known = Outcome(outcome.request, outcome.verified, outcome.accepted, np.array(ended, np.uint64))
            if ended or len(outcome.request):
                self._lane.later(lambda: self._observe(known))

    def close(self) -> None:
        """Closes the source; of one that hangs, the thread is left to the end of the process."""
        with self._turn:
            try:
                self._lane.end(self._source.close, CLOSE_SECONDS)
            except WHATEVER as error:
                self._failed(Why.FAILED, error)

    def _propose(self, batch: Batch, budget: NDArray[np.uint32]) -> object:
        answer = self._source.propose(batch, budget)
        self.memory = self._source.memory()
        return answer

    def _observe(self, outcome: Outcome) -> None:
        try:
            self._source.observe(outcome)
            self.memory = self._source.memory()
        except WHATEVER as error:
            self._failed(Why.FAILED, error)

    def _failed(self, why: Why, error: BaseException) -> None:
        with self._record:
            self._breaker.failed(self._clock())
        facts.source_called(self.name, why, error=error)

    def _not_asked(self, why: Why) -> tuple[None, Why]:
        facts.source_called(self.name, why)
        return None, why
