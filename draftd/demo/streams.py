"""Verifier streams: threads with a client each, which replay workloads side by side."""

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftd.client import Client, Namespace
from draftd.replay.budgets import FixedBudget
from draftd.replay.client_drafter import ClientDrafter
from draftd.replay.result import ReplayResult
from draftd.replay.runner import ReplayError, replay
from draftd.replay.traces import RecordedRequest, read_trace, workload_name

TENANT = "demo"
DEADLINE = 5.0  # seconds; far beyond any draft: a late one is a failure, and ends the demo


@dataclass(frozen=True)
class Workload:
    """A recording, or its first requests, and what its replay has counted so far."""

    name: str
    requests: list[RecordedRequest]
    result: ReplayResult

    @property
    def tokens(self) -> int:
        """Tokens that verify steps will emit: all output but each request's first token."""
        return sum(len(request.output) - 1 for request in self.requests)


def load_workload(path: Path, most_tokens: int) -> Workload:
    """Whole requests from the start of a recording, up to the one with which the output reaches `most_tokens`."""
    name = workload_name(path)
    requests: list[RecordedRequest] = []
    tokens = 0
    for request in read_trace(path):
        requests.append(request)
        tokens += len(request.output)
        if tokens >= most_tokens:
            break
    return Workload(name, requests, ReplayResult(name))


class Streams:
    """Replays every workload once. A stream takes one workload after another and each in arrival order, so an agent
    session never has two turns in flight. Each workload is a model of its own at the server: nothing is shared."""

    def __init__(self, endpoint: str, workloads: Sequence[Workload], streams: int, nodes: int) -> None:
        self._endpoint = endpoint
        self._nodes = nodes
        self._waiting: queue.SimpleQueue[Workload] = queue.SimpleQueue()
        for workload in sorted(workloads, key=lambda workload: -workload.tokens):
            self._waiting.put(workload)
        self._stopped = threading.Event()
        self._failures: queue.SimpleQueue[ReplayError] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(streams)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends every stream after its request under way, and waits for that."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds` for a stream to end. False once all have."""
        running = next((thread for thread in self._threads if thread.is_alive()), None)
        if running is None:
            return False
        running.join(seconds)
        return True

    def raise_failure(self) -> None:
        """Raises what ended a stream early, if anything did."""
        if not self._failures.empty():
            raise self._failures.get()

    def _run(self, number: int) -> None:
        while not self._stopped.is_set():
            try:
                workload = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._replay(workload, f"stream-{number}")
            except ReplayError as error:
                self._failures.put(error)
                self._stopped.set()

    def _replay(self, workload: Workload, verifier: str) -> None:
        namespace = Namespace(tenant=TENANT, model=workload.name)
        with Client(self._endpoint, namespace, verifier=verifier, deadline=DEADLINE) as client:
            drafter = ClientDrafter(client)
            replay(self._until_stopped(workload.requests), drafter, FixedBudget(self._nodes), workload.result)

    def _until_stopped(self, requests: list[RecordedRequest]) -> Iterator[RecordedRequest]:
        for request in requests:
            if self._stopped.is_set():
                return
            yield request
