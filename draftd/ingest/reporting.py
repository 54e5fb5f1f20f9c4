"""What the loader process says while it works: lines of JSON, a progress line several times a second."""

import os
import sys
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from draftd.ingest.job import Built, Described, Line, Opened, Progress, Refused, Stage
from draftd.ingest.readers import Position

SECONDS = 0.1  # between two progress lines


@dataclass(slots=True)
class Count:
    """What is gathered so far."""

    documents: int = 0
    tokens: int = 0
    label_bytes: int = 0


class Reporter:
    """Reports progress from a thread of its own within the context. Ends the process when nobody listens any more."""

    def __init__(self) -> None:
        self.count = Count()
        self.position = Position()
        self._writing = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._report, name="progress", daemon=True)
        self._stage = Stage.READING

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def say(self, line: Opened | Progress | Built | Described | Refused) -> None:
        with self._writing:
            sys.stdout.write(Line(line=line).model_dump_json() + "\n")
            sys.stdout.flush()

    def building(self) -> None:
        """Everything is read."""
        self._stage = Stage.BUILDING
        self._progress()

    def _report(self) -> None:
        while not self._done.wait(SECONDS):
            try:
                self._progress()
            except BrokenPipeError:
                os._exit(1)  # the server is gone

    def _progress(self) -> None:
        total = self.position.bytes_total
        self.say(
            Progress(
                stage=self._stage,
                documents=self.count.documents,
                tokens=self.count.tokens,
                label_bytes=self.count.label_bytes,
                bytes_read=total if self._stage is Stage.BUILDING else self.position.bytes_read,
                bytes_total=total,
            )
        )
