"""The server's side of the loader process.

Parsing, tokenizing and sorting take long, and the first two hold Python's lock, which would stop the step path. A
process of its own, of low priority, does not, gives its memory back when it ends, and takes nothing with it when it
dies.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from draftd.ingest.cancellation import Cancellation
from draftd.ingest.child import Child
from draftd.ingest.job import (
    Built,
    Described,
    DescribeJob,
    Job,
    LoadJob,
    Opened,
    Progress,
    RebuildJob,
    Refused,
    SealJob,
)
from draftd.ingest.problem import IngestError, TooLarge

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
        self._running: set[Child] = set()
        self._spare: Child | None = None  # started, and waiting for a job
        self._closed = False
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """A job is about to come: its process may start meanwhile, which takes as long as reading a million tokens."""
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = Child()

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
            for child in self._running:
                child.kill()
            if self._spare is not None:
                self._spare.close()

    def _build(self, job: AnyJob, on_opened: OnOpened, on_progress: OnProgress, cancelled: Cancellation) -> Built:
        result = self._run(job, on_opened, on_progress, cancelled)
        assert isinstance(result, Built)
        return result

    def _run(
        self, job: AnyJob, on_opened: OnOpened, on_progress: OnProgress, cancelled: Cancellation
    ) -> Built | Described:
        outcome: Built | Described | Refused | None = None
        with self._child() as child, cancelled.calling(child.kill):
            for line in child.work(Job(job=job, processes=self._processes)):
                if isinstance(line, Progress):
                    on_progress(line)
                elif isinstance(line, Opened):
                    on_opened(line)
                else:
                    outcome = line
            failure = child.failure()
        if cancelled.is_set():
            raise Cancelled("the load was cancelled")
        if failure is not None:
            raise LoaderError("the server is stopping" if self._closed else failure)
        assert outcome is not None, "a process that succeeds says what became of its job"
        if isinstance(outcome, Refused):
            raise (TooLarge if outcome.too_large else IngestError)(outcome.problem)
        return outcome

    @contextmanager
    def _child(self) -> Iterator[Child]:
        """A loader process that has ended when the context is left: by itself, or, after an exception, killed."""
        with self._lock:
            if self._closed:
                raise LoaderError("the server is stopping")
            child, self._spare = self._spare, None
            if child is not None and not child.lives():
                child.close()
                child = None
            child = child or Child()
            self._running.add(child)
        try:
            yield child
        finally:
            with self._lock:
                self._running.discard(child)
            child.close()


def _ignore(_: Opened | Progress) -> None: ...
