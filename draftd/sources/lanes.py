"""Where a source's calls run: on the caller's thread, or on one that is the source's alone."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Work = Callable[[], T]

MOST_WAITING = 64
"""Works for later that wait at a thread: behind one that hangs no more are taken."""


class Late(Exception):
    """There was no answer in time. What comes later is thrown away."""


class WorkFailed(Exception):
    """The work raised `error`. Whatever else a lane raises is no fault of the source, as when a user interrupts."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class SourceLane(Protocol):
    """Calls never overlap, and run in the order in which they came."""

    @property
    def busy(self) -> bool:
        """Is it still at a call that nobody waits for any longer? Then no other can begin."""

    def call(self, work: Work[T], seconds: float) -> T:
        """Its result; not to be asked of a lane that is busy. Raises WorkFailed, or Late after so many seconds."""

    def later(self, work: Work[None]) -> bool:
        """Runs it before the next call; nobody waits for it. False: it is not taken, there is too much before it."""

    def end(self, work: Work[None], seconds: float) -> None:
        """The last call, which runs when those before it have ended. Raises WorkFailed or Late."""


class OwnThreadLane:
    """The thread is a daemon: a call that never comes back keeps no process from ending."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._last: Future[Any] = Future()
        self._last.set_result(None)
        Thread(target=self._run, name=f"draftd-source-{name}", daemon=True).start()

    @property
    def busy(self) -> bool:
        return not self._last.done()

    def call(self, work: Work[T], seconds: float) -> T:
        return _outcome(self._queued(work), seconds)

    def later(self, work: Work[None]) -> bool:
        if self.busy or self._queue.qsize() >= MOST_WAITING:
            return False
        self._queue.put(lambda: _fulfil(Future(), work))
        return True

    def end(self, work: Work[None], seconds: float) -> None:
        answer = self._queued(work)
        self._queue.put(None)
        _outcome(answer, seconds)

    def _queued(self, work: Work[T]) -> Future[T]:
        answer: Future[T] = Future()
        self._last = answer
        self._queue.put(lambda: _fulfil(answer, work))
        return answer

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()


class CallerLane:
    """For native calls, which can't be waited for less long than they take: what comes too late is not used."""

    busy = False

    def call(self, work: Work[T], seconds: float) -> T:
        began = time.perf_counter()
        result = _run_here(work)
        took = time.perf_counter() - began
        if took > seconds:
            raise Late(f"it took {took * 1000:.1f} ms of {seconds * 1000:.1f}")
        return result

    def later(self, work: Work[None]) -> bool:
        work()
        return True

    def end(self, work: Work[None], seconds: float) -> None:  # noqa: ARG002  (nothing to wait for)
        _run_here(work)


def _run_here(work: Work[T]) -> T:
    try:
        return work()
    except KeyboardInterrupt:
        raise  # the user's, on this thread
    except BaseException as error:  # panics of Rust, cancellations and the like are no Exception
        raise WorkFailed(error) from error


def _fulfil(answer: Future[T], work: Work[T]) -> None:
    try:
        answer.set_result(work())
    except BaseException as error:  # noqa: BLE001 - the thread has to go on, whatever it was
        answer.set_exception(error)


def _outcome(answer: Future[T], seconds: float) -> T:
    try:
        error = answer.exception(seconds)  # returned, so that a TimeoutError of the work is not taken for ours
    except TimeoutError:
        raise Late(f"no answer in {seconds * 1000:.1f} ms") from None
    if error is not None:
        raise WorkFailed(error) from error
    return answer.result()
