"""Drafting while large corpora come and go: the in-core time of a step, idle and during each kind of work behind it.

    python -m bench.disturbance [--corpus FILE.npz] [--traces DIR] [--tokens 20000000] [--rounds 3]

64 requests of recorded traffic step against a corpus of four segments, every 20 ms, while at the same server a second
corpus of as many tokens is built, the four and a fifth segment are merged, and the second corpus is removed. Each kind
of work is compared with the steps before any of it. Work behind the steps is done by one process at a time; the table
says what of a core it got while it did not wait for the disk. Ends with status 1 if a p99 is more than twice the idle
one, or if the work got less than 90 % of a core: then the comparison says little.
"""

import argparse
import io
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from rich.table import Table

from bench.ingest import post, remove
from bench.step import DEADLINE, Batch, endless
from bench.text import TokenArray, add_traces_option, corpus_documents, first_tokens, permuted_copies
from draftd.client import Namespace
from draftd.client.client import ChannelClient
from draftd.client.zmq_channel import ZmqChannel
from draftd.demo.sample import SAMPLE_CORPUS
from draftd.demo.server import Server, running_server
from draftd.observe import terminal

REQUESTS, NODES = 64, 16
SEGMENTS = 4
PACE = 0.02  # seconds from step to step, about what a target needs for a forward pass
IDLE_STEPS = 1000
QUIET = 2.0  # seconds: as long a removed corpus may be felt, and no merge is under way if none begins
SLOWDOWN_LIMIT = 2.0
BUSY_FLOOR = 0.9


@dataclass
class Phase:
    """One kind of work behind the steps, and how long the steps took meanwhile, in microseconds."""

    name: str
    core: list[float] = field(default_factory=list)
    ran: float = 0.0  # seconds that the server's loaders ran on a core
    waited: float = 0.0  # and waited for one

    def p99(self) -> float:
        return float(np.percentile(self.core, 99))

    def got(self) -> float | None:
        """What of a core the loaders got, of what they could use; None: there were none."""
        return self.ran / (self.ran + self.waited) if self.ran else None


class Steps:
    """Requests that step at a steady pace."""

    def __init__(self, client: ChannelClient, traces: Path) -> None:
        self._client = client
        self._batch = Batch(client, endless(traces), REQUESTS)

    def take(self, phase: Phase) -> None:
        while self._batch.fill():
            self._batch.step(NODES)  # the first step of a request brings its whole text: not what is asked
        started = time.perf_counter()
        self._batch.step(NODES)
        phase.core.append(self._client.last_core_micros)
        time.sleep(max(0.0, PACE - (time.perf_counter() - started)))


@dataclass(frozen=True)
class Scheduled:
    """Seconds that the server's loaders under way have run on a core, and waited for one, so far."""

    ran: float = 0.0
    waited: float = 0.0

    @classmethod
    def read(cls, server: psutil.Process) -> "Scheduled":
        ran = waited = 0.0
        for child in server.children():
            with suppress(FileNotFoundError, ProcessLookupError):
                for task in Path(f"/proc/{child.pid}/task").iterdir():
                    words = (task / "schedstat").read_text().split()
                    ran, waited = ran + int(words[0]) / 1e9, waited + int(words[1]) / 1e9
        return cls(ran, waited)


def during(work: Callable[[], object], steps: Steps, phase: Phase, server: psutil.Process) -> None:
    """Steps until the work is done, and notes how a loader fared while one ran."""
    thread = threading.Thread(target=work)
    thread.start()
    before = Scheduled()
    while thread.is_alive():
        steps.take(phase)
        now = Scheduled.read(server)
        if now.ran >= before.ran > 0.0 and now.waited >= before.waited:
            phase.ran += now.ran - before.ran
            phase.waited += now.waited - before.waited
        before = now
    thread.join()


def wait_until_merged(server: psutil.Process) -> None:
    """Merging begins a moment after the load that makes it due."""
    last = time.monotonic()
    while time.monotonic() < last + QUIET:
        if server.children():
            last = time.monotonic()
        time.sleep(PACE)


def packed(documents: Sequence[TokenArray]) -> bytes:
    file = io.BytesIO()
    ends = np.cumsum([len(document) for document in documents])
    np.savez(file, token_ids=np.concatenate(documents), doc_offsets=np.concatenate([[0], ends]))
    return file.getvalue()


def measure(documents: Sequence[TokenArray], traces: Path, rounds: int, server: Server) -> list[Phase]:
    address = server.http.removeprefix("http://")
    (process,) = psutil.Process().children()
    whole, fifth = packed(documents), packed(documents[: len(documents) // 2])
    for part in range(SEGMENTS):
        post(address, packed(documents[part::SEGMENTS]), "application/x-npz", "drafting", "add")
    idle, building, merging, removing = (Phase(name) for name in ("idle", "building", "merging", "removing"))
    namespace = Namespace(tenant="drafting")
    channel = ZmqChannel(server.endpoint)
    with ChannelClient(channel, namespace, verifier="bench", deadline=DEADLINE, vocabulary_size=0) as client:
        steps = Steps(client, traces)
        for _ in range(IDLE_STEPS):
            steps.take(idle)
        for _ in range(rounds):
            during(lambda: post(address, whole, "application/x-npz", "other"), steps, building, process)
            during(lambda: (remove(address, "other"), time.sleep(QUIET)), steps, removing, process)
        during(lambda: post(address, fifth, "application/x-npz", "drafting", "add"), steps, building, process)
        during(lambda: wait_until_merged(process), steps, merging, process)
    return [idle, building, merging, removing]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SAMPLE_CORPUS, help=".npz with token_ids and doc_offsets")
    add_traces_option(parser)
    parser.add_argument("--tokens", type=int, default=20_000_000, help="of each corpus")
    parser.add_argument("--rounds", type=int, default=3, help="times that the second corpus is built and removed")
    options = parser.parse_args(arguments)

    documents = first_tokens(permuted_copies(corpus_documents(options.corpus), options.tokens), options.tokens)
    with running_server() as server:
        phases = measure(documents, options.traces, options.rounds, server)
    idle = phases[0]
    title = f"{REQUESTS} requests, {NODES} nodes, a corpus of {options.tokens:,} tokens: µs of a step in the core"
    table = Table("meanwhile", title=title, title_justify="left")
    for column in ("steps", "p50", "p99", "p99 / idle", "work got of a core"):
        table.add_column(column, justify="right")
    missed = []
    for phase in phases:
        p50, slowdown = np.percentile(phase.core, 50), phase.p99() / idle.p99()
        got = phase.got()
        share = "-" if got is None else f"{got:.0%}"
        table.add_row(phase.name, str(len(phase.core)), f"{p50:.0f}", f"{phase.p99():.0f}", f"{slowdown:.2f}", share)
        if slowdown > SLOWDOWN_LIMIT:
            missed.append(f"{phase.name}: p99 is {slowdown:.2f} of idle, at most {SLOWDOWN_LIMIT} wanted")
        if got is not None and got < BUSY_FLOOR:
            missed.append(f"{phase.name}: the work got {got:.0%} of a core, at least {BUSY_FLOOR:.0%} wanted")
    console = terminal.console()
    console.print(table)
    for line in missed:
        console.print(line, style="red")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
