"""The server's side of the loader process.

Parsing, tokenizing and sorting take long, and the first two hold Python's lock, which would stop the step path. A
process of its own, of low priority, does not, gives its memory back when it ends, and takes nothing with it when it
dies.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from draftd.ingest.cancellation import Cancellation
from draftd.ingest.job import (
    Built,
    Described,
    DescribeJob,
    Job,
    Line,
    LoadJob,
    Opened,
    Progress,
    RebuildJob,
    Refused,
    SealJob,
)
from draftd.ingest.problem import IngestError

NICENESS = 10  # steps of drafting go first

OnOpened = Callable[[Opened], None]
OnProgress = Callable[[Progress], None]
AnyJob = LoadJob | SealJob | RebuildJob | DescribeJob


class LoaderError(RuntimeError):
    """The loader process died: a defect, too little memory, or the server is stopping."""


class Cancelled(RuntimeError):
    """The job was called off."""


class Loader:
    """Runs jobs, each in a process of its own. Calls block; threads may call at once.

    All calls raise LoaderError, and Cancelled after `cancelled` was set. What `on_opened` and `on_progress` raise ends
    the job and is raised again."""

    def __init__(self, processes: int) -> None:
        """`processes`: how many may tokenize at once for one load."""
        self._processes = processes
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._lock = threading.Lock()

    def load(self, job: LoadJob, *, on_opened: OnOpened, on_progress: OnProgress, cancelled: Cancellation) -> Built:
        """Raises IngestError too."""
        return self._build(job, on_opened, on_progress, cancelled)

    def seal(self, job: SealJob, *, on_progress: OnProgress, cancelled: Cancellation) -> Built:
        """Raises IngestError too."""
        return self._build(job, _ignore, on_progress, cancelled)

    def rebuild(self, job: RebuildJob, *, on_progress: OnProgress, cancelled: Cancellation) -> Built:
        return self._build(job, _ignore, on_progress, cancelled)

    def describe(self, job: DescribeJob) -> Described:
        """Raises IngestError too."""
        result = self._run(job, _ignore, _ignore, Cancellation())
        assert isinstance(result, Described)
        return result

    def close(self) -> None:
        """Ends what runs; its callers get LoaderError."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()

    def _build(self, job: AnyJob, on_opened: OnOpened, on_progress: OnProgress, cancelled: Cancellation) -> Built:
        result = self._run(job, on_opened, on_progress, cancelled)
        assert isinstance(result, Built)
        return result

    def _run(
        self, job: AnyJob, on_opened: OnOpened, on_progress: OnProgress, cancelled: Cancellation
    ) -> Built | Described:
        outcome: Built | Described | Refused | None = None
        with tempfile.TemporaryFile() as errors:
            with self._process(errors) as process, cancelled.calling(process.kill):
                _send(process, Job(job=job, processes=self._processes))
                for line in _lines(process):
                    if isinstance(line, Progress):
                        on_progress(line)
                    elif isinstance(line, Opened):
                        on_opened(line)
                    else:
                        outcome = line
            if cancelled.is_set():
                raise Cancelled("the load was cancelled")
            if process.returncode != 0 or outcome is None:
                raise LoaderError(self._why(process.returncode, errors))
        if isinstance(outcome, Refused):
            raise IngestError(outcome.problem)
        return outcome

    @contextmanager
    def _process(self, errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
        """A loader process that has ended when the context is left: by itself, or, after an exception, killed."""
        with self._lock:
            if self._closed:
                raise LoaderError("the server is stopping")
            process = subprocess.Popen(
                ["nice", "-n", str(NICENESS), sys.executable, "-P", "-m", "draftd.ingest"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # numpy's linear algebra is not used; its threads would only make the start longer.
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            )
            self._running.add(process)
        with process:
            try:
                yield process
                process.wait()
            finally:
                process.kill()
                with self._lock:
                    self._running.discard(process)

    def _why(self, returncode: int, errors: IO[bytes]) -> str:
        if self._closed:
            return "the server is stopping"
        if returncode < 0:
            return f"the loader process was killed by signal {-returncode}; is there enough memory?"
        errors.seek(0)
        last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f"the loader process failed: {last or returncode}"


def _send(process: subprocess.Popen[bytes], job: Job) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(job.model_dump_json().encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died; its status says why


def _lines(process: subprocess.Popen[bytes]) -> Iterator[Opened | Progress | Built | Described | Refused]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith(b"\n"):  # the last one of a process that was killed may be half a line
            yield Line.model_validate_json(line).line


def _ignore(_: Opened | Progress) -> None: ...
