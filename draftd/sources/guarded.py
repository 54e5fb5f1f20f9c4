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
from draftd.sources.lanes import CallerLane, Late, OwnThreadLane, SourceLane, WorkFailed
from draftd.sources.source import Batch, Lane, Outcome, Proposals, Source, begins

CLOSE_SECONDS = 2.0
NO_OUTCOMES = Outcome(np.empty(0, np.uint64), np.empty(0, np.uint16), np.empty(0, np.uint16), np.empty(0, np.uint64))


class Why(StrEnum):
    """What became of a call; also the label of the metric."""

    ANSWERED = "answered"
    LATE = "late"  # no answer within the time that was left
    FAILED = "failed"  # it raised, or answered what can't be meant
    NO_TIME = "no_time"  # not asked: by its own word it takes longer than is left
    OFF = "off"  # not asked: the circuit breaker is open
    BUSY = "busy"  # not asked: another step was

    @property
    def was_asked(self) -> bool:
        return self in (Why.ANSWERED, Why.LATE, Why.FAILED)


class GuardedSource:
    """Deadline, circuit breaker, checked answers, and what the source knows of which text. Thread-safe."""

    def __init__(self, name: str, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.nature = source.nature
        self._source = source
        self._clock = clock
        self._lane: SourceLane = CallerLane() if source.nature.lane is Lane.NATIVE else OwnThreadLane(name)
        self._turn = Lock()  # one step at a time asks
        self._held = 0  # bytes, as of its last call
        self._ended: list[int] = []  # requests that it was shown, and has not been told the end of
        self._record = Lock()  # guards what follows, which the source's own thread writes, too
        self._breaker = CircuitBreaker()
        self._hearing = CircuitBreaker()  # of observe: answers in between don't make a source that is deaf hear
        self._shown: dict[int, int] = {}  # request to the tokens of it that the source surely has

    def starts(self, requests: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """From where on the text of each request has to be in the next batch, or from before."""
        with self._record:
            return np.array([self._shown.get(request, 0) for request in requests.tolist()], np.uint32)

    def may_answer(self, rows: int, seconds: float) -> bool:
        """Whether asking now can bring anything: not while it is at an earlier call, or left alone for its failures,
        nor where by its own word so many rows take longer."""
        if self.nature.micros(rows) / 1e6 > seconds:
            self._not_asked(Why.NO_TIME)
            return False
        with self._record:
            return not self._lane.busy and self._breaker.would_allow(self._clock())

    def ask(self, batch: Batch, budget: NDArray[np.uint32], seconds: float) -> tuple[Proposals | None, Why]:
        """Proposals, with at most budget[i] nodes for row i, or why there are none. Takes `seconds` at most. Does not
        wait for another step's call: what was left of the time would not be the source's fault.

        Raises nothing that the source could be a reason for."""
        if self.nature.micros(len(budget)) / 1e6 > seconds:
            return self._not_asked(Why.NO_TIME)
        if not self._turn.acquire(blocking=False):
            return self._not_asked(Why.BUSY)
        try:
            with self._record:
                allowed = self._breaker.allows(self._clock())
            if not allowed:
                return self._not_asked(Why.OFF)
            return self._call(batch, budget, seconds)
        finally:
            if self._ended:  # perhaps while it was asked
                self._tell(NO_OUTCOMES)
            self._turn.release()

    def _call(self, batch: Batch, budget: NDArray[np.uint32], seconds: float) -> tuple[Proposals | None, Why]:
        if self._lane.busy:
            return self._failed(self._breaker, Why.LATE, Late("it is still at an earlier call"))
        with self._record:
            # Until the call has come to a good end, nobody knows how much of the batch the source took: it would be
            # shown these texts from their beginnings.
            self._shown.update(dict.fromkeys(batch.request.tolist(), 0))
        began = time.perf_counter()
        try:
            proposals = self._lane.call(lambda: self._propose(batch, budget), seconds)
        except Late as late:
            return self._failed(self._breaker, Why.LATE, late)
        except WorkFailed as failed:
            return self._failed(self._breaker, Why.FAILED, failed.error)
        with self._record:
            self._breaker.succeeded()
        facts.source_called(self.name, Why.ANSWERED, len(proposals.tokens), time.perf_counter() - began)
        return proposals, Why.ANSWERED

    def observe(self, outcome: Outcome) -> None:
        """Passes it on; of the requests that ended, those that the source was ever shown.

        Never waits. A source that can't hear now, for another step asks it, it hangs or keeps failing to, misses what
        became of its proposals; ends are kept until they reach it."""
        with self._record:
            ended = (request for request in outcome.ended.tolist() if self._shown.pop(request, None) is not None)
            self._ended.extend(ended)
        if not (self._ended or len(outcome.request)) or not self._turn.acquire(blocking=False):
            return
        try:
            self._tell(outcome)
        finally:
            self._turn.release()

    def close(self) -> None:
        """Closes the source; one that is still at a call, when that ends. Of one that hangs, the thread is left to the
        end of the process."""
        with self._turn:
            try:
                self._lane.end(self._source.close, CLOSE_SECONDS)
            except Late as late:
                self._failed(self._breaker, Why.FAILED, late)
            except WorkFailed as failed:
                self._failed(self._breaker, Why.FAILED, failed.error)
            else:
                self._count_memory(0)

    def _tell(self, outcome: Outcome) -> None:
        """What became of proposals, and all ends that it was not told yet."""
        with self._record:
            if not self._hearing.allows(self._clock()):
                return
            ended = np.array(self._ended, np.uint64)
        known = Outcome(outcome.request, outcome.verified, outcome.accepted, ended)
        if self._lane.later(lambda: self._observe(known)):
            with self._record:
                del self._ended[: len(ended)]

    def _count_memory(self, held: int) -> None:
        facts.source_holds(self.name, held - self._held)
        self._held = held

    def _propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        """On the source's lane, so that a call that ends well after its time still leaves the source with the texts,
        which are not sent again then: a resend of everything would be late once more."""
        answer = require_answer(self._source.propose(batch, budget), self.nature, budget)
        self._count_memory(self._source.memory())
        ends = batch.start + batch.token_end - begins(batch.token_end)
        with self._record:
            for request, end in zip(batch.request.tolist(), ends.tolist(), strict=True):
                if request in self._shown:  # not one that ended while the call was late
                    self._shown[request] = end
        return answer

    def _observe(self, outcome: Outcome) -> None:
        try:
            self._source.observe(outcome)
            self._count_memory(self._source.memory())
        except KeyboardInterrupt:
            raise  # on the caller's lane the user's
        except BaseException as error:  # noqa: BLE001 - a plug-in may raise anything, and fails alone
            self._failed(self._hearing, Why.FAILED, error)
        else:
            with self._record:
                self._hearing.succeeded()

    def _failed(self, breaker: CircuitBreaker, why: Why, error: BaseException) -> tuple[None, Why]:
        with self._record:
            breaker.failed(self._clock())
        facts.source_called(self.name, why, error=error)
        return None, why

    def _not_asked(self, why: Why) -> tuple[None, Why]:
        facts.source_called(self.name, why)
        return None, why
