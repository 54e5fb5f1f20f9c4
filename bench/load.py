"""Many engines at one server, on a schedule that does not wait for it: how long steps take, and what the server uses.

    python -m bench.load [--traces DIR] [--engines 1 4] [--batch 32] [--context 1024 8192] [--rate 50] [--seconds 10]
                         [--nodes 16] [--svg FILE] [--json FILE]

Every combination is measured with a server of its own. Each engine is a process with a client and as many requests as
its batch, whose texts are recorded ones; a request that has said 1,024 tokens makes room for the next. A step's latency
counts from when it was due, so a server that stalls once is late for every step that was due meanwhile; docs/load.md
tells how to read the figures.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import psutil
from rich.progress import track
from rich.table import Table

from bench.arctic import windows
from bench.latency_drawing import draw
from bench.load_engine import OUTPUT, EngineJob, EngineProcess, Phase, Taken, running_engines
from bench.text import TokenArray, add_traces_option, trace_documents
from draftd.demo.server import Server, running_server
from draftd.observe import terminal

ROWS = 4  # texts for each place of a batch
HEAD_START = 0.2  # seconds, until all engines know when to start
PERCENTILES = (50, 90, 99, 99.9)


@dataclass(frozen=True)
class Load:
    """What engines ask of a server."""

    engines: int
    batch: int
    context: int  # tokens of each prompt
    rate: float  # steps of each engine for each second
    nodes: int  # most of a request

    def __str__(self) -> str:
        engines = "1 engine" if self.engines == 1 else f"{self.engines} engines"
        return f"{engines} x {self.batch} requests x {self.context:,} tokens"


@dataclass
class Measured:
    """What became of it."""

    taken: Taken = field(default_factory=Taken)
    seconds: float = 0.0
    server_seconds: float = 0.0  # processor time of the server, all its threads

    def merge(self, other: "Measured") -> None:
        self.taken.merge(other.taken)
        self.seconds += other.seconds
        self.server_seconds += other.server_seconds

    @property
    def server_cores(self) -> float:
        return self.server_seconds / self.seconds

    def percentile(self, percent: float) -> int:
        """Of the latencies, in microseconds."""
        return self.taken.latencies.percentile(percent)

    def as_dict(self) -> dict[str, object]:
        """For JSON; times of steps are microseconds."""
        taken = self.taken
        return {
            "steps": taken.latencies.count,
            "latency": {f"p{percent:g}": taken.latencies.percentile(percent) for percent in (*PERCENTILES, 100)},
            "waited": {f"p{percent:g}": taken.waits.percentile(percent) for percent in (*PERCENTILES, 100)},
            "tokens_per_row": taken.emitted / taken.rows,
            "nodes_per_row": taken.nodes / taken.rows,
            "unanswered": taken.unanswered,
            "server_cores": self.server_cores,
        }


@contextmanager
def engines_at(server: Server, load: Load, documents: Sequence[TokenArray]) -> Iterator[list[EngineProcess]]:
    """The engines of a load, each with texts of its own."""
    with tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder:
        texts = windows(documents, ROWS * load.engines * load.batch, load.context + OUTPUT)
        jobs = []
        for number in range(load.engines):
            file = Path(folder, f"{number}.npy")
            np.save(file, texts[number :: load.engines])
            jobs.append(EngineJob(server.endpoint, number, file, load.batch, load.context, load.nodes))
        with running_engines(jobs) as engines:
            yield engines


def step_together(engines: Sequence[EngineProcess], phase: Phase, server: psutil.Process) -> Measured:
    """All of them, from a moment on for as long as the phase has seconds."""
    before = server.cpu_times()
    phase = replace(phase, start=time.monotonic() + HEAD_START)
    for engine in engines:
        engine.begin(phase)
    measured = Measured()
    for engine in engines:
        measured.taken.merge(engine.taken())
    measured.seconds = time.monotonic() - phase.start
    after = server.cpu_times()
    measured.server_seconds = after.user + after.system - before.user - before.system
    return measured


@contextmanager
def measured_server() -> Iterator[tuple[Server, psutil.Process]]:
    """A server, and its process."""
    other = {*psutil.Process().children()}
    with running_server() as server:
        (process,) = {*psutil.Process().children()} - other
        yield server, process


def measure(load: Load, seconds: float, documents: Sequence[TokenArray]) -> Measured:
    with measured_server() as (server, process), engines_at(server, load, documents) as engines:
        return step_together(engines, Phase(seconds=seconds, rate=load.rate), process)


def latency_table(named: Mapping[str, Measured]) -> Table:
    table = Table("load", title="Latency of a step from when it was due, ms", title_justify="left")
    columns = ("steps", *(f"p{percent:g}" for percent in PERCENTILES), "most", "tokens", "unanswered", "server cores")
    for column in columns:
        table.add_column(column, justify="right")
    for name, measured in named.items():
        taken = measured.taken
        table.add_row(
            name,
            f"{taken.latencies.count:,}",
            *(f"{measured.percentile(percent) / 1000:.2f}" for percent in (*PERCENTILES, 100)),
            f"{taken.emitted / taken.rows:.2f}",
            f"{taken.unanswered:,}",
            f"{measured.server_cores:.2f}",
        )
    return table


def report(named: Mapping[str, Measured], svg: Path | None, json_file: Path | None) -> None:
    """Prints the table; draws and writes what was asked for."""
    terminal.console(width=140).print(latency_table(named))
    if svg:
        draw({name: measured.taken.latencies for name, measured in named.items()}, svg)
    if json_file:
        figures = {name: measured.as_dict() for name, measured in named.items()}
        json_file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--svg", type=Path, help="draw the percentiles into this file")
    parser.add_argument("--json", type=Path, help="write all that was measured to this file")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--engines", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 32], help="requests of an engine")
    parser.add_argument("--context", type=int, nargs="+", default=[1024, 8192], help="tokens of a request's prompt")
    parser.add_argument("--rate", type=float, default=50.0, help="steps of an engine for each second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each combination")
    parser.add_argument("--nodes", type=int, default=16, help="most nodes of a request")
    add_report_options(parser)
    options = parser.parse_args(arguments)

    documents = trace_documents(options.traces)
    loads = [
        Load(*of_it, options.rate, options.nodes) for of_it in product(options.engines, options.batch, options.context)
    ]
    shown = track(loads, "stepping", console=terminal.console(stderr=True))
    measured = {str(load): measure(load, options.seconds, documents) for load in shown}
    report(measured, options.svg, options.json)


if __name__ == "__main__":
    main()
