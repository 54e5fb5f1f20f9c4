"""One engine step of many requests, end to end: the drafter's core, both ways to it, and a raw echo of the same bytes.

    python -m bench.step [--traces DIR] [--corpus FILE.npz] [--requests 64] [--nodes 16] [--shared 1000000]

A real server is given shared history; then two verifiers step recorded traffic in turn, one over ZMQ and one through
shared memory, committing what a target would have emitted. Every ZMQ step is followed by a ZMQ echo between
processes of as many bytes each way. Ends with status 1 if a target is missed; only the default batch, of 64 requests
and 16 nodes, has targets.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.echo import message, running_echo
from bench.text import TokenArray, add_traces_option, corpus_documents, first_tokens, trace_documents
from draftd.client import Namespace, Request
from draftd.client.channel import Channel
from draftd.client.client import ChannelClient
from draftd.client.ring_channel import RingChannel
from draftd.client.zmq_channel import ZmqChannel
from draftd.demo.sample import trace_files
from draftd.demo.server import running_server
from draftd.observe import terminal
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.replay.verification import verify

# The targets are for so many requests of so many nodes each, beside so many tokens of shared history.
REQUESTS, NODES, SHARED = 64, 16, 1_000_000
CORE_LIMIT = 800.0  # microseconds, p50
ZMQ_LIMIT = 1.6  # a round trip over ZMQ against the core and an echo
RING_LIMIT = 0.6  # what one through shared memory may take beyond the core, in ZMQ echoes
DEADLINE = 30.0
STOP_ID = 2


class MeasuredChannel:
    """A channel that remembers the sizes of the last message each way."""

    sent = received = 0

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.close = channel.close

    def send(self, frames: list[bytes], timeout: float) -> bool:
        self.sent = len(frames[-1])
        return self._channel.send(frames, timeout)

    def receive(self, timeout: float) -> bytes | None:
        frame = self._channel.receive(timeout)
        if frame is not None:
            self.received = len(frame)
        return frame


@dataclass
class Running:
    """A request between two steps: what comes next, and how far it is."""

    recorded: list[int]
    committed: int = 0
    position: int = 1  # the first token comes from prefill

    def next_tokens(self) -> list[int]:
        return self.recorded[self.committed : self.position]


@dataclass
class Times:
    """Microseconds, one entry per step of one way."""

    core: list[float] = field(default_factory=list)
    round_trip: list[float] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    def beyond_core(self) -> float:
        return float(np.median(self.round_trip) - np.median(self.core))


@dataclass
class Figures:
    zmq: Times = field(default_factory=Times)
    ring: Times = field(default_factory=Times)
    echo: list[float] = field(default_factory=list)  # microseconds
    bytes_sent: list[int] = field(default_factory=list)
    bytes_received: list[int] = field(default_factory=list)

    def core_p50(self) -> float:
        return float(np.median(self.zmq.core + self.ring.core))

    def zmq_ratio(self) -> float:
        """A round trip over ZMQ against the core and an echo; of the medians."""
        return float(np.median(self.zmq.round_trip) / (np.median(self.zmq.core) + np.median(self.echo)))

    def ring_ratio(self) -> float:
        """What a round trip through shared memory takes beyond the core, in echoes; of the medians."""
        return self.ring.beyond_core() / float(np.median(self.echo))

    def missed_targets(self) -> list[str]:
        missed = []
        if self.core_p50() > CORE_LIMIT:
            missed.append(f"p50 in the core: {self.core_p50():.0f} µs, at most {CORE_LIMIT:.0f} wanted")
        if self.zmq_ratio() > ZMQ_LIMIT:
            missed.append(f"ZMQ: {self.zmq_ratio():.2f}x the core and an echo, at most {ZMQ_LIMIT}x wanted")
        if self.ring_ratio() > RING_LIMIT:
            missed.append(f"shared memory beyond the core: {self.ring_ratio():.2f} echoes, at most {RING_LIMIT} wanted")
        return missed


class Batch:
    """Requests side by side; one that ends makes room for the next of the traffic."""

    def __init__(self, client: ChannelClient, traffic: Iterator[RecordedRequest], size: int) -> None:
        self._client = client
        self._traffic = traffic
        self._running: dict[Request, Running] = {}
        self._numbers = itertools.count()
        self._size = size
        self.fill()

    def fill(self) -> bool:
        """Opens requests up to the batch's size. False if it was full."""
        was_full = len(self._running) == self._size
        while len(self._running) < self._size:
            recorded = next(self._traffic)
            name = f"{next(self._numbers)}:{recorded.id}"
            request = self._client.open(name, recorded.prompt, stop_ids=[STOP_ID], share="none", wait=True)
            self._running[request] = Running(recorded.output.tolist())
        return not was_full

    def step(self, nodes: int) -> int:
        """Commits and drafts for all; returns the nodes drafted. Ended requests are closed."""
        commits = {request: running.next_tokens() for request, running in self._running.items()}
        started = time.perf_counter_ns()
        drafts = self._client.step(commits, max_nodes=nodes)
        self.micros = (time.perf_counter_ns() - started) / 1000
        self.core_micros = self._client.last_core_micros
        drafted = 0
        for request, draft in drafts.items():
            running = self._running[request]
            step = verify(draft.tokens.tolist(), draft.parents.tolist(), running.recorded, running.position)
            drafted += step.nodes
            running.committed, running.position = running.position, running.position + step.emitted
            if running.position == len(running.recorded):
                request.close("finished")
                del self._running[request]
        return drafted


def share(client: ChannelClient, documents: list[TokenArray]) -> int:
    """Puts documents into the history that the client's requests read. Returns the tokens."""
    for number, document in enumerate(documents):
        client.open(f"shared-{number}", document, share="all").close("finished")
    client.open("all-indexed", [], wait=True).close("aborted")
    return sum(map(len, documents))


def endless(folder: Path) -> Iterator[RecordedRequest]:
    """The requests of all recordings in turn, again and again; none that ends with its first token."""
    recordings = [list(read_trace(path)) for path in trace_files(folder)]
    turns = [request for turn in itertools.zip_longest(*recordings) for request in turn if request is not None]
    return itertools.cycle(request for request in turns if len(request.output) > 1)


def measure(options: argparse.Namespace, documents: list[TokenArray]) -> Figures:
    figures = Figures()
    with (
        tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder,
        running_server() as server,
        running_echo(f"ipc://{folder}/echo.sock"),
        closing(ZmqChannel(f"ipc://{folder}/echo.sock")) as echo,
    ):
        channel = MeasuredChannel(ZmqChannel(server.endpoint))
        with verifier_of(channel) as over_zmq, verifier_of(RingChannel(server.endpoint)) as through_ring:
            share(over_zmq, documents)
            by_zmq = Batch(over_zmq, endless(options.traces), options.requests)
            by_ring = Batch(through_ring, endless(options.traces), options.requests)
            while len(figures.echo) < options.steps:
                timed_step(by_ring, figures.ring, options.nodes)
                if timed_step(by_zmq, figures.zmq, options.nodes):
                    figures.bytes_sent.append(channel.sent)
                    figures.bytes_received.append(channel.received)
                    figures.echo.append(echo_micros(echo, channel.sent, channel.received))
    return figures


def verifier_of(channel: Channel) -> ChannelClient:
    return ChannelClient(channel, Namespace(model="bench"), verifier="bench", deadline=DEADLINE, vocabulary_size=0)


def timed_step(batch: Batch, times: Times, nodes: int) -> bool:
    """False for a step that is not timed: the first one of a request brings its whole text."""
    if batch.fill():
        batch.step(nodes)
        return False
    times.nodes.append(batch.step(nodes))
    times.round_trip.append(batch.micros)
    times.core.append(batch.core_micros)
    return True


def echo_micros(channel: ZmqChannel, sent: int, received: int) -> float:
    question = message(sent, received)
    started = time.perf_counter_ns()
    channel.send([question], DEADLINE)
    channel.receive(DEADLINE)
    return (time.perf_counter_ns() - started) / 1000


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="share this .npz instead of the text of the recordings")
    add_traces_option(parser)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--nodes", type=int, default=NODES, help="most nodes of each request")
    parser.add_argument("--shared", type=int, default=SHARED, help="tokens of shared history")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args(arguments)

    text = corpus_documents(options.corpus) if options.corpus else trace_documents(options.traces)
    documents = first_tokens(text, options.shared)
    figures = measure(options, documents)

    table = Table(title="One step, microseconds", title_justify="left")
    for heading in ("", "p50", "p99"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, values in (
        ("in the core", figures.zmq.core + figures.ring.core),
        ("ZMQ", figures.zmq.round_trip),
        ("shared memory", figures.ring.round_trip),
        ("raw echo over ZMQ", figures.echo),
    ):
        table.add_row(name, *(f"{np.percentile(values, percent):.0f}" for percent in (50, 99)))
    console = terminal.console(width=110)
    console.print(table)
    console.print(
        f"{options.requests} requests, {np.mean(figures.zmq.nodes):.0f} nodes a step, {sum(map(len, documents)):,}"
        f" tokens shared; {np.mean(figures.bytes_sent):.0f} bytes out, {np.mean(figures.bytes_received):.0f} back."
        f" ZMQ {figures.zmq_ratio():.2f}x the core and an echo; shared memory {figures.ring_ratio():.2f} echoes beyond"
        " the core.",
        highlight=False,
    )
    has_targets = (options.requests, options.nodes) == (REQUESTS, NODES)
    missed = figures.missed_targets() if has_targets else []
    for miss in missed:
        console.print(miss, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
