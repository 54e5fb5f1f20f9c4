"""An engine of the load generator: a process with a client of its own, whose requests go on as recorded."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from bench.open_loop import Latencies, SystemClock, due_times, run
from bench.text import TokenArray
from draftd.client import Client, Draft, Namespace, Request
from draftd.client.request import CloseWord
from draftd.replay.verification import verify
from draftd.wire import Reason

DEADLINE = 30.0  # seconds: a late draft is to be seen in the latencies, not as an empty one
NO_ANSWER = (Reason.LATE, Reason.UNREACHABLE, Reason.OFF, Reason.REFUSED, Reason.SHED)
OUTPUT = 1024  # tokens; then another request takes the place


@dataclass(frozen=True)
class EngineJob:
    """One engine. `texts` is a file of int32[requests, tokens]; `context` tokens of each are a prompt, and what follows
    is what the target says. `batch` requests run at once, in the order of the rows, again and again."""

    endpoint: str
    number: int  # among the engines
    texts: Path
    batch: int
    context: int
    nodes: int  # most of a request


@dataclass(frozen=True)
class Phase:
    """Steps to take, from `start` on: seconds of the clock that all processes share. With `long_texts`, a file as
    `EngineJob.texts` whose prompts have `long_context` tokens, a request of it joins the others every second, in place
    of the one before it."""

    seconds: float
    rate: float  # steps for each second
    start: float = 0.0
    long_texts: Path | None = None
    long_context: int = 0


@dataclass
class Taken:
    """What became of the steps."""

    latencies: Latencies = field(default_factory=Latencies)  # from when a step was due
    waits: Latencies = field(default_factory=Latencies)  # of them, until it could begin
    rows: int = 0
    nodes: int = 0
    emitted: int = 0
    unanswered: int = 0  # rows to which the drafter said nothing in time

    def merge(self, other: "Taken") -> None:
        self.latencies.merge(other.latencies)
        self.waits.merge(other.waits)
        self.rows += other.rows
        self.nodes += other.nodes
        self.emitted += other.emitted
        self.unanswered += other.unanswered


@dataclass
class _Running:
    output: list[int]
    committed: int = 0
    position: int = 1  # the first token comes from prefill


class LoadedEngine:
    """Requests side by side, and the next where one has ended. Openings and closes go with the message of the next
    step, as the adapters have it."""

    def __init__(self, client: Client, job: EngineJob) -> None:
        self._client = client
        self._job = job
        self._texts = np.load(job.texts, mmap_mode="r")
        self._numbers = count()  # of requests
        self._places = count()  # of rows of `texts`
        self._running: dict[Request, _Running] = {}
        self._drafts: dict[Request, Draft] = {}
        for _ in range(job.batch):
            self._open_next(wait=True)
        self.step()
        self.verify(Taken())

    def step(self) -> None:
        """Commits and drafts for all: what an engine waits for."""
        commits = {request: it.output[it.committed : it.position] for request, it in self._running.items()}
        self._drafts = self._client.step(commits, max_nodes=self._job.nodes)

    def verify(self, taken: Taken) -> None:
        """What the target does with the drafts."""
        for request, draft in self._drafts.items():
            running = self._running[request]
            outcome = verify(draft.tokens.tolist(), draft.parents.tolist(), running.output, running.position)
            taken.rows += 1
            taken.nodes += outcome.nodes
            taken.emitted += outcome.emitted
            taken.unanswered += draft.reason in NO_ANSWER
            running.committed, running.position = running.position, running.position + outcome.emitted
            if running.position == len(running.output):
                self.end(request, "finished")
                self._open_next(wait=False)

    def take(self, phase: Phase) -> Taken:
        taken = Taken()
        clock = SystemClock()
        long_requests = _LongRequests(self, phase) if phase.long_texts else None

        def after_step() -> None:
            self.verify(taken)
            if long_requests:
                long_requests.keep_up(clock.now())

        due = phase.start + due_times(phase.rate, phase.seconds, self._job.number)
        run(due, self.step, after_step, clock, taken.latencies, taken.waits)
        if long_requests:
            long_requests.end()
        return taken

    def open(self, text: TokenArray, context: int, *, wait: bool = False) -> Request:
        name = f"{self._job.number}:{next(self._numbers)}"
        request = self._client.open(name, text[:context], wait=wait, hold=not wait)
        self._running[request] = _Running(text[context:].tolist())
        return request

    def end(self, request: Request, reason: CloseWord) -> None:
        self._client.close_request(request, reason, hold=True)
        del self._running[request]

    def _open_next(self, *, wait: bool) -> None:
        text = self._texts[next(self._places) % len(self._texts)]
        self.open(text, self._job.context, wait=wait)


class _LongRequests:
    """One request with a long prompt beside the others, every second another."""

    def __init__(self, engine: LoadedEngine, phase: Phase) -> None:
        assert phase.long_texts is not None
        self._engine = engine
        self._context = phase.long_context
        self._texts = cycle(np.load(phase.long_texts))
        self._due = phase.start
        self._request: Request | None = None

    def keep_up(self, now: float) -> None:
        if now < self._due:
            return
        self._due += 1.0
        self.end()
        self._request = self._engine.open(next(self._texts), self._context)

    def end(self) -> None:
        if self._request is not None:
            self._engine.end(self._request, "aborted")
            self._request = None


class EngineProcess:
    """An engine in a process of its own. Takes one phase at a time, beside the others."""

    def __init__(self, job: EngineJob) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(job, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        """Raises EOFError if the process ended instead; it has said why."""
        self._pipe.recv()

    def begin(self, phase: Phase) -> None:
        self._pipe.send(phase)

    def taken(self) -> Taken:
        """Waits for the phase's end."""
        taken = self._pipe.recv()
        assert isinstance(taken, Taken)
        return taken

    def end(self) -> None:
        self._pipe.close()  # which ends the process
        self._process.join()


def _serve(job: EngineJob, pipe: Connection) -> None:
    client = Client(job.endpoint, Namespace(model="bench"), verifier=f"engine-{job.number}", deadline=DEADLINE)
    with client:
        engine = LoadedEngine(client, job)
        pipe.send("ready")
        while True:
            try:
                phase = pipe.recv()
            except EOFError:
                return
            pipe.send(engine.take(phase))


@contextmanager
def running_engines(jobs: Sequence[EngineJob]) -> Iterator[list[EngineProcess]]:
    """Engines whose requests are open and indexed."""
    engines = [EngineProcess(job) for job in jobs]
    try:
        for engine in engines:
            engine.wait_until_ready()
        yield engines
    finally:
        for engine in engines:
            engine.end()
