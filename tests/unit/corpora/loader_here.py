"""A loader that does its jobs in this process, which starts in no time; tests/faults has the real one."""

from draftd.ingest import Built, Cancellation, Loader, LoadJob, Opened, Progress, RebuildJob, SealJob
from draftd.ingest.job import Described, DescribeJob, Refused
from draftd.ingest.loader import AnyJob, OnOpened, OnProgress
from draftd.ingest.reporting import Reporter
from draftd.ingest.work import describe, load, rebuild, seal


class LoaderHere(Loader):
    def __init__(self) -> None:
        super().__init__(processes=1)

    def _run(
        self, job: AnyJob, on_opened: OnOpened, on_progress: OnProgress, cancelled: Cancellation
    ) -> Built | Described:
        reporter = _Direct(on_opened, on_progress)
        match job:
            case LoadJob():
                return load(job, 1, reporter)
            case SealJob():
                return seal(job, reporter)
            case RebuildJob():
                return rebuild(job, reporter)
            case DescribeJob():
                return describe(job)


class _Direct(Reporter):
    """Says what it has to say to the callbacks; nothing in between."""

    def __init__(self, on_opened: OnOpened, on_progress: OnProgress) -> None:
        super().__init__()
        self._on_opened = on_opened
        self._on_progress = on_progress

    def say(self, line: Opened | Progress | Built | Described | Refused) -> None:
        if isinstance(line, Opened):
            self._on_opened(line)
        elif isinstance(line, Progress):
            self._on_progress(line)
