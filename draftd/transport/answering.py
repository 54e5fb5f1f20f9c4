"""Threads that answer frames of several verifiers at the same time: the engine works without Python's lock."""

import contextlib
import os
import threading
from collections import deque
from dataclasses import dataclass
from queue import SimpleQueue

from draftd.engine import Answer, Engine


@dataclass(frozen=True, slots=True)
class Answered:
    peer: bytes
    answer: Answer


class Answering:
    """Used by one thread, which gives frames and fetches answers."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self._engine = engine
        self._tasks: SimpleQueue[tuple[bytes, bytes, bool] | None] = SimpleQueue()
        self._done: deque[Answered] = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._threads = [threading.Thread(target=self._run, name=f"draftd-answer-{i}") for i in range(threads)]
        self.in_hand = 0  # frames given, whose answers were not fetched

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when all that was given is answered, to be fetched before `close`."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        """Readable when there are answers to fetch."""
        return self._fd

    def is_free(self) -> bool:
        """Whether a thread has nothing to do."""
        return self.in_hand < len(self._threads)

    def give(self, peer: bytes, frame: bytes, *, shed: bool) -> None:
        self.in_hand += 1
        self._tasks.put((peer, frame, shed))

    def fetch(self) -> list[Answered]:
        """Answers in the order in which they came to be."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)
        fetched = [self._done.popleft() for _ in range(len(self._done))]
        self.in_hand -= len(fetched)
        return fetched

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            peer, frame, shed = task
            self._done.append(Answered(peer, self._engine.handle(frame, shed=shed)))
            os.eventfd_write(self._fd, 1)
