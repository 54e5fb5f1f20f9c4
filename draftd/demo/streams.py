"""Verifier streams: processes with a client each, which replay workloads side by side."""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from draftd.client import Client, Namespace
from draftd.demo.server import DemoError
from draftd.replay.budgets import FixedBudget
from draftd.replay.client_drafter import ClientDrafter
from draftd.replay.result import ReplayResult
from draftd.replay.runner import ReplayError, replay
from draftd.replay.traces import RecordedRequest, read_trace, workload_name

TENANT = "demo"
DEADLINE = 5.0  # seconds; far beyond any draft: a late one is a failure, and ends the demo


@dataclass(frozen=True)
class Workload:
    """The first requests of a recording: whole ones, up to the one with which the output reaches `most_tokens`."""

    path: Path
    most_tokens: int

    @property
    def name(self) -> str:
        return workload_name(self.path)

    def requests(self) -> Iterator[RecordedRequest]:
        tokens = 0
        for request in read_trace(self.path):
            yield request
            tokens += len(request.output)
            if tokens >= self.most_tokens:
                return

    def emitted(self) -> int:
        """Tokens that verify steps will emit: all output but each request's first token."""
        return sum(len(request.output) - 1 for request in self.requests())


@dataclass(frozen=True)
class Progress:
    """How far a workload is; `result` once it is done."""

    workload: str
    steps: int
    emitted: int
    result: ReplayResult | None = None


@dataclass(frozen=True)
class Failed:
    """Why a stream ended early."""

    why: str


class Streams:
    """Replays every workload once, a share of them in each process.

    A stream takes one workload after another and each in arrival order, so an agent session never has two turns in
    flight. Each workload is a model of its own at the server: they share nothing.
    """

    def __init__(self, endpoint: str, shares: Sequence[Sequence[Workload]], nodes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        for number, share in enumerate(shares):
            ours, theirs = context.Pipe(duplex=False)
            arguments = (theirs, endpoint, list(share), nodes, f"stream-{number}")
            process = context.Process(target=_run_stream, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._processes[ours] = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection, process in self._processes.items():
            process.terminate()
            process.join()
            connection.close()

    def messages(self, seconds: float) -> Iterator[Progress | None]:
        """What the streams say until all are done, and None whenever they say nothing for so long.

        Raises ReplayError if a stream fails, DemoError if its process dies.
        """
        talking = set(self._processes)
        while talking:
            ready = wait(list(talking), seconds)
            if not ready:
                yield None
            for connection in ready:
                assert isinstance(connection, Connection)
                try:
                    message = connection.recv()
                except EOFError:
                    talking.discard(connection)
                    self._check_end(self._processes[connection])
                    continue
                if isinstance(message, Failed):
                    raise ReplayError(message.why)
                yield message

    def _check_end(self, process: multiprocessing.process.BaseProcess) -> None:
        process.join()
        if process.exitcode != 0:
            raise DemoError(f"a verifier stream ended with status {process.exitcode}")


def _run_stream(parent: Connection, endpoint: str, share: list[Workload], nodes: int, verifier: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent ends us
    try:
        for workload in share:
            _replay(parent, endpoint, workload, nodes, verifier)
    except ReplayError as error:
        parent.send(Failed(str(error)))


def _replay(parent: Connection, endpoint: str, workload: Workload, nodes: int, verifier: str) -> None:
    result = ReplayResult(workload.name)

    def telling() -> Iterator[RecordedRequest]:
        for request in workload.requests():
            yield request
            parent.send(Progress(workload.name, result.steps, result.emitted))

    namespace = Namespace(tenant=TENANT, model=workload.name)
    with Client(endpoint, namespace, verifier=verifier, deadline=DEADLINE) as client:
        replay(telling(), ClientDrafter(client), FixedBudget(nodes), result)
    parent.send(Progress(workload.name, result.steps, result.emitted, result))


def share_out(workloads: Sequence[Workload], streams: int) -> list[list[Workload]]:
    """Longest first, each to the stream with the least so far."""
    shares: list[list[Workload]] = [[] for _ in range(streams)]
    loads = [0] * streams
    for emitted, workload in sorted(((w.emitted(), w) for w in workloads), key=lambda pair: -pair[0]):
        lightest = loads.index(min(loads))
        shares[lightest].append(workload)
        loads[lightest] += emitted
    return [share for share in shares if share]
