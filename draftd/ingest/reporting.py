"""What the loader process says while it works: lines of JSON, a progress line several times a second."""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from draftd.ingest.job import Built, Described, Line, Opened, Progress, Refused, Stage

SECONDS = 0.1  # between two progress lines


@dataclass(slots=True)
class Count:
    """What is gathered so far."""

    documents: int = 0
    tokens: int = 0


class Reporter:
    """Reports from a thread of its own until the context is left. Ends the process when nobody listens any more."""

    def __init__(self) -> None:
        self.count = Count()
        self._writing = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._report, name="progress", daemon=True)
        self._file: IO[bytes] | None = None
        self._bytes_before = 0  # of the files before this one
        self._bytes_total = 0
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

    def expect(self, size: int) -> None:
        """Bytes that there are to be read; 0: nobody knows."""
        self._bytes_total = size

    def watch(self, file: IO[bytes]) -> None:
        """The file that is being read now."""
        self._bytes_before += _position(self._file)
        self._file = file

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
        read = self._bytes_total if self._stage is Stage.BUILDING else self._bytes_before + _position(self._file)
        self.say(
            Progress(
                stage=self._stage,
                documents=self.count.documents,
                tokens=self.count.tokens,
                bytes_read=read,
                bytes_total=self._bytes_total,
            )
        )


def _position(file: IO[bytes] | None) -> int:
    # Of the file itself, whoever reads it through whatever unpacks it. A pipe, or one that was closed, has none.
    with suppress(OSError, ValueError):
        if file is not None:
            return os.lseek(file.fileno(), 0, os.SEEK_CUR)
    return 0
