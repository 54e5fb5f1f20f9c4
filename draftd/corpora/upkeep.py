"""What goes on behind the calls: a thread that does one thing again and again, and what becomes of its failures."""

import os
import threading
import time
from collections.abc import Callable

from draftd.corpora.problem import OverLimit
from draftd.observe import facts

NICENESS = 10  # steps of drafting go first
REST_SECONDS = 30.0  # until what failed is tried again


class Upkeep:
    """Calls `work` every so many seconds, and soon after `wake`."""

    def __init__(self, name: str, seconds: float, work: Callable[[], None]) -> None:
        self._seconds = seconds
        self._work = work
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        if not self._stopping:
            self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Returns after the call under way."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)  # Linux keeps it per thread
        while not self._stopping:
            self._wake.wait(self._seconds)
            self._wake.clear()
            if not self._stopping:
                self._try()

    def _try(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - a defect must not end what keeps histories on the disk
            facts.call_failed(self._thread.name, error)


class Attempts:
    """Work that may fail, of one thread: a failure is a log line and a counter, and rests a while."""

    def __init__(self) -> None:
        self._resting: dict[str, float] = {}  # until when, by what is worked on

    def run(self, what: str, work: Callable[[], None]) -> None:
        if time.monotonic() < self._resting.get(what, 0.0):
            return
        try:
            work()
        except OverLimit as error:
            facts.limit_reached(what, str(error))
        except Exception as error:  # noqa: BLE001 - what is behind it in the round must not wait for it
            facts.maintenance_failed(what, error)
        else:
            self._resting.pop(what, None)
            return
        self._resting[what] = time.monotonic() + REST_SECONDS
