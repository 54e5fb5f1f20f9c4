"""Loads as their callers see them: how far each is, and calling it off."""

import threading
import time
import uuid
from collections.abc import Callable
from enum import StrEnum

from draftd.ingest.cancellation import Cancellation
from draftd.ingest.job import Ack, CorpusKey, Loaded, Progress, Stage
from draftd.ingest.pace import Pace

KEPT = 1000  # jobs that ended, to be asked about; older ones are forgotten


class State(StrEnum):
    """Where a load is. The last three are ends."""

    RECEIVING = "receiving"  # its documents arrive
    WAITING = "waiting"  # for other loads
    READING = "reading"  # parsing, tokenizing, checking
    BUILDING = "building"  # sorting and writing the segment
    DURABLE = "durable"  # on disk, and about to end
    DONE = "done"  # drafts use it
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDS = (State.DONE, State.FAILED, State.CANCELLED)
_STAGES = {Stage.READING: State.READING, Stage.BUILDING: State.BUILDING}


class Job:
    """One load. Threads may call at once; what is read is true of one moment each."""

    def __init__(self, key: CorpusKey | None, clock: Callable[[], float] = time.monotonic) -> None:
        """`key`: None while only the documents themselves say whose they are."""
        self.id = uuid.uuid4().hex
        self.key = key
        self.state = State.RECEIVING
        self.documents = 0
        self.tokens = 0
        self.bytes_read = 0  # of what arrived, packed or not
        self.bytes_total = 0  # 0: not known
        self.problem: str | None = None
        self.created = time.time()  # unix seconds
        self.cancellation = Cancellation()
        self._clock = clock
        self._read_from = 0.0  # on the clock
        self._token_pace = Pace()
        self._byte_pace = Pace()
        self.ended_at: float | None = None  # on the clock
        self._lock = threading.Lock()

    @property
    def tokens_per_second(self) -> float:
        """At present, while it reads; then over all that was done since reading began."""
        if self.state is State.READING:
            return self._token_pace.per_second
        seconds = self._seconds()
        return self.tokens / seconds if seconds > 0 else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds until all is read, at the present pace; None where nobody can say."""
        pace = self._byte_pace.per_second
        if self.state is not State.READING or self.bytes_read > self.bytes_total or not pace:
            return None
        return (self.bytes_total - self.bytes_read) / pace

    def received(self, size: int) -> None:
        """More bytes have arrived."""
        self.bytes_read += size

    def waits(self) -> None:
        """Everything has arrived."""
        self._move(State.WAITING)

    def starts(self) -> None:
        """It is its turn."""
        self.bytes_read = 0
        self._read_from = self._clock()
        self._token_pace.at(self._read_from, 0)
        self._byte_pace.at(self._read_from, 0)
        self._move(State.READING)

    def progressed(self, progress: Progress) -> None:
        self.documents, self.tokens = progress.documents, progress.tokens
        self.bytes_read, self.bytes_total = progress.bytes_read, progress.bytes_total
        now = self._clock()
        self._token_pace.at(now, self.tokens)
        self._byte_pace.at(now, self.bytes_read)
        self._move(_STAGES[progress.stage])

    def acknowledged(self, ack: Ack) -> None:
        if ack is Ack.DURABLE:
            self._move(State.DURABLE)

    def succeeded(self, loaded: Loaded) -> None:
        self.key = loaded.key
        self.documents, self.tokens = loaded.documents, loaded.tokens
        self._end(State.DONE)

    def failed(self, problem: str) -> None:
        self.problem = problem
        self._end(State.FAILED)

    def cancelled(self) -> None:
        self._end(State.CANCELLED)

    def _seconds(self) -> float:
        if not self._read_from:
            return 0.0
        return (self._clock() if self.ended_at is None else self.ended_at) - self._read_from

    def _move(self, state: State) -> None:
        # A late word of a thread must not bring an ended job back.
        with self._lock:
            if self.state not in ENDS:
                self.state = state

    def _end(self, state: State) -> None:
        self.ended_at = self._clock()
        self._move(state)


class Jobs:
    """All loads under way, and the last that ended."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.id] = job
            ended = [known.id for known in self._jobs.values() if known.state in ENDS]
            for job_id in ended[: max(0, len(ended) - KEPT)]:
                del self._jobs[job_id]

    def get(self, job_id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(job_id)

    def all(self) -> list[Job]:
        """Oldest first."""
        with self._lock:
            return list(self._jobs.values())
