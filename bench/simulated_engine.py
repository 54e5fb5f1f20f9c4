"""An engine whose steps cost what a roofline says: recorded requests in a batch that is kept full.

A step reads the model's weights whatever its size, so up to the ridge, where arithmetic takes as long as memory, every
size costs the same. Graphs are captured for some sizes; a step is padded to the next of them.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, zip_longest
from pathlib import Path

import numpy as np

from draftd.client import Draft, Request
from draftd.client.client import ChannelClient
from draftd.client.local import LocalChannel
from draftd.client.pacing import StepOptions
from draftd.demo.sample import trace_files
from draftd.engine import Engine
from draftd.replay.arrivals import Arrivals
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.replay.verification import verify

# An 8B model in 16 bits on an H100.
PLAIN_MILLISECONDS = 4.48
RIDGE = 295  # tokens
MULTIPLE = 32  # sizes above 64
STOP_ID = 2  # every recorded output ends with it
SETTLE_SECONDS = 30.0


def padded(tokens: int) -> int:
    """The size of the graph that runs a step of so many tokens: 1, 2, 4, ..., 64, then multiples of 32."""
    if tokens <= 2 * MULTIPLE:
        return 1 << (tokens - 1).bit_length()
    return -(-tokens // MULTIPLE) * MULTIPLE


def step_milliseconds(tokens: int) -> float:
    """What a step of so many tokens costs, drafted ones included."""
    return PLAIN_MILLISECONDS * max(1.0, padded(tokens) / RIDGE)


def graph_sizes(most: int) -> list[int]:
    """All sizes of graphs up to the one for `most` tokens."""
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(padded(sizes[-1] + 1))
    return sizes


def mixed_traffic(folder: Path, rounds: int) -> list[RecordedRequest]:
    """The first `rounds` requests of every recording, all recordings in turn; none that ends with its first token."""
    recordings = [list(islice(read_trace(path), rounds)) for path in trace_files(folder)]
    turns = (request for turn in zip_longest(*recordings) for request in turn if request is not None)
    return [request for request in turns if len(request.output) > 1]


class TimedChannel(LocalChannel):
    """Adds up the processor time that the engine takes for messages: what a server's thread would spend on them."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.milliseconds = 0.0

    def send(self, frames: list[bytes], timeout: float) -> bool:
        started = time.thread_time_ns()
        sent = super().send(frames, timeout)
        self.milliseconds += (time.thread_time_ns() - started) / 1e6
        return sent


@dataclass(frozen=True)
class Drafting:
    """How drafts are asked for: at most `nodes` for each request. `reports_steps`: with the time and the width of
    each step, the time off by a factor whose logarithm has the standard deviation `noise`."""

    nodes: int
    reports_steps: bool = False
    noise: float = 0.0


@dataclass
class Simulated:
    """What the engine did while its batch was full."""

    batch: int
    steps: int = 0
    emitted: int = 0  # tokens
    nodes: int = 0
    milliseconds: float = 0.0
    drafter_milliseconds: list[float] = field(default_factory=list)  # the drafter's processor time for each step

    @property
    def throughput(self) -> float:
        """Tokens per millisecond."""
        return self.emitted / self.milliseconds

    @property
    def speed_up(self) -> float:
        """Throughput against that without drafts, where every request of the batch emits one token a step."""
        return self.throughput * step_milliseconds(self.batch) / self.batch


class _Running:
    """How far the verification of one request is."""

    def __init__(self, recorded: RecordedRequest) -> None:
        self.recorded = recorded
        self.output: list[int] = recorded.output.tolist()
        self._committed = 0
        self.position = 1  # of the next token to verify: the first comes from prefill

    @property
    def complete(self) -> bool:
        return self.position == len(self.output)

    def take_uncommitted(self) -> list[int]:
        tokens = self.output[self._committed : self.position]
        self._committed = self.position
        return tokens


class SimulatedEngine:
    """Runs recorded requests in their order, `batch` at once, of a session never more than one.

    `client` talks to `engine` over `channel`. Between two steps all text is indexed, as it would be while a real
    target computes; so the figures don't depend on how fast this machine is.
    """

    def __init__(
        self, client: ChannelClient, channel: TimedChannel, engine: Engine, traffic: Sequence[RecordedRequest]
    ) -> None:
        self._client = client
        self._channel = channel
        self._engine = engine
        self._arrivals = Arrivals(traffic)
        self._numbers = count()
        self._running: dict[Request, _Running] = {}
        self._last_step = StepOptions()

    def run(self, batch: int, drafting: Drafting, seed: int = 0) -> Simulated:
        """Steps until the batch can't be filled any more. `seed` is of the noise."""
        done = Simulated(batch)
        noise = np.random.default_rng(seed)
        while self._fill(batch):
            drafts, drafter_milliseconds = self._drafts(drafting)
            nodes, emitted = self._verify(drafts)
            milliseconds = step_milliseconds(batch + nodes)
            if drafting.reports_steps:
                measured = milliseconds * float(np.exp(drafting.noise * noise.standard_normal()))
                self._last_step = {"step_seconds": measured / 1000, "step_width": batch + nodes}
            done.steps += 1
            done.emitted += emitted
            done.nodes += nodes
            done.milliseconds += milliseconds
            done.drafter_milliseconds.append(drafter_milliseconds)
        return done

    def _fill(self, batch: int) -> bool:
        while len(self._running) < batch:
            recorded = self._arrivals.start_next()
            if recorded is None:
                return False
            name = f"{next(self._numbers)}:{recorded.id}"
            request = self._client.open(name, recorded.prompt, stop_ids=[STOP_ID], wait=True)
            self._running[request] = _Running(recorded)
        return True

    def _drafts(self, drafting: Drafting) -> tuple[dict[Request, Draft], float]:
        """Commits and drafts for all; and the processor time that the drafter takes for it, in milliseconds."""
        commits = {request: running.take_uncommitted() for request, running in self._running.items()}
        before = self._channel.milliseconds
        drafts = self._client.step(commits, max_nodes=drafting.nodes, **self._last_step)
        taken = self._channel.milliseconds - before
        self._engine.settle(SETTLE_SECONDS)
        return drafts, taken

    def _verify(self, drafts: Mapping[Request, Draft]) -> tuple[int, int]:
        """The nodes that were drafted, and the tokens that the step emits. Requests that end are closed."""
        nodes = emitted = 0
        for request, draft in drafts.items():
            running = self._running[request]
            step = verify(draft.tokens.tolist(), draft.parents.tolist(), running.output, running.position)
            nodes += step.nodes
            emitted += step.emitted
            running.position += step.emitted
            if running.complete:
                self._finish(request, running)
        return nodes, emitted

    def _finish(self, request: Request, running: _Running) -> None:
        request.commit(running.take_uncommitted())
        self._engine.settle(SETTLE_SECONDS)
        request.close("finished")
        self._engine.settle(SETTLE_SECONDS)
        del self._running[request]
        self._arrivals.ended(running.recorded)
