"""Where a source's calls run: on the caller's thread, or on one that is the source's alone."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Protocol, TypeVar

T = TypeVar("T")
Work = Callable[[], T]


class Late(Exception):
    """There was no answer in time. What comes later is thrown away."""


class SourceLane(Protocol):
    """Calls never overlap, and run in the order in which they came."""

    def call(self, work: Work[T], seconds: float) -> T:
        """Its result, or what it raises. Raises Late after so many seconds, or sooner where it could not begin."""

    def later(self, work: Work[None]) -> None:
        """Runs it before the next call; nobody waits for it. It raises nothing."""

    def end(self, work: Work[None], seconds: float) -> None:
        """The last call. Raises what it raises, or Late."""


class OwnThreadLane:
    """The thread is a daemon: a call that never comes back keeps no process from ending."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._last: Future[object] = Future()
        self._last.set_result(None)
        Thread(target=self._run, name=f"draftd-source-{name}", daemon=True).start()

    def call(self, work: Work[T], seconds: float) -> T:
        if not self._last.done():
            raise Late("it is still at an earlier call")
        answer: Future[T] = Future()
        self._last = answer  # type: ignore[assignment]  # only asked whether it is done
        self._queue.put(lambda: _fulfil(answer, work))
        try:
            return answer.result(seconds)
        except TimeoutError:
            if answer.done():  # raised by the work itself
                raise
            raise Late(f"no answer in {seconds * 1000:.1f} ms") from None

    def later(self, work: Work[None]) -> None:
        self._queue.put(work)

    def end(self, work: Work[None], seconds: float) -> None:
        try:
            self.call(work, seconds)
        finally:
            self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()


class CallerLane:
    """For native calls, which can't be waited for less long than they take: what comes too late is not used."""

    def call(self, work: Work[T], seconds: float) -> T:
        began = time.perf_counter()
        result = work()
        took = time.perf_counter() - began
        if took > seconds:
            raise Late(f"it took {took * 1000:.1f} ms of {seconds * 1000:.1f}")
        return result

    def later(self, work: Work[None]) -> None:
        work()

    def end(self, work: Work[None], seconds: float) -> None:  # noqa: ARG002  (nothing to wait for)
        work()


def _fulfil(answer: Future[T], work: Work[T]) -> None:
    try:
        answer.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is the caller's to raise
        answer.set_exception(error)
