"""Loads that come in over HTTP and gRPC: admitted, kept on disk as they arrive, and run in their turn."""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from draftd.config import CorporaSettings
from draftd.corpora import CorpusLibrary, OverLimit
from draftd.engine import LimitExceeded
from draftd.ingest import Ack, Cancellation, Cancelled, CorpusKey, IngestError, LoaderError, LoadRequest
from draftd.ingest.child import NICENESS
from draftd.ingest.jobs import Job, Jobs
from draftd.observe import facts
from draftd.transport.disk import in_callers_words

PARALLEL_LOADS = 2  # loads that are read and built at the same time
MOST_LOADS = 32  # with those that arrive or wait; each may take corpora.max_upload_bytes of disk

# Writes what arrives into the folder, and says what is to be made of it.
Receive = Callable[[Job, Path], Awaitable[LoadRequest]]


class Busy(RuntimeError):
    """Too many loads at once. The text has the figures, and is for who may try again later."""


class Loads:
    """Lives on one event loop; the work itself is done by threads that let drafting go first."""

    def __init__(self, library: CorpusLibrary, settings: CorporaSettings) -> None:
        self.jobs = Jobs()
        self.library = library
        self.settings = settings
        self._turns = asyncio.Semaphore(PARALLEL_LOADS)
        self._threads = ThreadPoolExecutor(PARALLEL_LOADS, "loads", initializer=_let_drafting_go_first)
        self._under_way: set[asyncio.Task[None]] = set()

    async def load(self, key: CorpusKey | None, receive: Receive, ack: Ack) -> Job:
        """Returns when `ack` is reached; the job goes on to its end by itself, also when the caller is gone.

        Raises Busy, and what made the load fail before that: IngestError, LoaderError, Cancelled, OverLimit or
        LimitExceeded."""
        if len(self._under_way) >= MOST_LOADS:
            raise Busy(f"{MOST_LOADS} loads arrive, wait or run already, the most that are taken; try again later")
        job = Job(key)
        self.jobs.add(job)
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(self._run(job, receive, ack, reached))
        self._under_way.add(running)
        running.add_done_callback(self._under_way.discard)
        await asyncio.shield(reached)
        return job

    async def stop(self) -> None:
        """Calls off what is under way, and returns when it has ended."""
        for job in self.jobs.all():
            job.cancellation.set()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def cancel(self, job: Job) -> None:
        """Returns when it has ended: cancelled, or by itself if that was nearer."""
        job.cancellation.set()
        while job.ended_at is None:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    async def _run(self, job: Job, receive: Receive, ack: Ack, reached: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()

        def acknowledge(level: Ack) -> None:
            job.acknowledged(level)
            if level.includes(ack) and not reached.done():
                reached.set_result(None)

        def acknowledge_from_thread(level: Ack) -> None:
            if level is not Ack.VISIBLE:  # said below, once the job has the figures of its end
                loop.call_soon_threadsafe(acknowledge, level)

        try:
            async with folder_for_arrivals(self.library.scratch) as folder:
                async with _unless(job.cancellation):
                    await asyncio.to_thread(self.library.expect_load)
                    request = await receive(job, folder)
                    job.waits()
                    acknowledge(Ack.RECEIVED)
                    await self._turns.acquire()
                try:
                    job.starts()
                    loaded = await loop.run_in_executor(
                        self._threads,
                        lambda: self.library.load(
                            request,
                            on_progress=job.progressed,
                            on_ack=acknowledge_from_thread,
                            cancelled=job.cancellation,
                        ),
                    )
                finally:
                    self._turns.release()
        except asyncio.CancelledError:  # the server stops
            job.failed("the server is stopping")
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the job has to end and the caller to hear of it
            told = _ended_by(job, error)
            if not reached.done():
                reached.set_exception(told)
                reached.exception()  # the caller may be gone
        else:
            job.succeeded(loaded)
            acknowledge(Ack.VISIBLE)


@asynccontextmanager
async def folder_for_arrivals(scratch: Path) -> AsyncIterator[Path]:
    """A new one for what arrives, and what is in it, as long as the context. Raises LoaderError."""
    try:
        folder = tempfile.TemporaryDirectory(dir=scratch)
    except OSError as error:
        raise LoaderError(f"the documents can't be kept in {scratch}: {error.strerror}") from None
    try:
        yield Path(folder.name)
    finally:
        await asyncio.to_thread(folder.cleanup)  # gigabytes take a while, and steps over gRPC are on this loop


def _ended_by(job: Job, error: Exception) -> Exception:
    """Ends the job; returns what its caller is told."""
    if isinstance(error, Cancelled):
        job.cancelled()
        return error
    if isinstance(error, OSError):
        error = in_callers_words(error)  # the log has it from the library
    elif not isinstance(error, IngestError | LoaderError | OverLimit | LimitExceeded):
        facts.call_failed("a load", error)
        error = LoaderError("a defect of the server; its log says more")
    job.failed(str(error))
    return error


@asynccontextmanager
async def _unless(cancellation: Cancellation) -> AsyncIterator[None]:
    """Raises Cancelled out of whatever is awaited in the context when it is set, which must be on this event loop."""
    try:
        async with asyncio.timeout(None) as scope:
            with cancellation.calling(lambda: scope.reschedule(asyncio.get_running_loop().time())):
                yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise Cancelled("the load was cancelled") from None


def _let_drafting_go_first() -> None:
    # Linux keeps a niceness per thread.
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
