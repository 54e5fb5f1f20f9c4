"""What drafts are worth to an engine with the roofline of an H100, with every way to say how many are made.

    python -m bench.roofline [--traces DIR] [--batch 1 8 32 64 128 256] [--noise 0.05] [--json FILE]

A step of the simulated engine costs 4.48 ms x max(1, n / 295) for n tokens, padded to 1, 2, 4, ..., 64, then multiples
of 32 (bench/simulated_engine.py). It runs the recordings mixed, all in turn, and keeps its batch full; what it emits
for each millisecond is compared with plain decoding, and with the best of many fixed counts of nodes for each request.
Only figures of draftd's own drafts and no clock go into that: they are the same on every machine. Beside them stands
the processor time that the drafter takes for a step. Takes six minutes on two cores; of each recording as many requests
are replayed as the table says. Ends with status 1 if a target is missed, on full recordings only.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from bench.peers import peers
from bench.simulated_engine import (
    Drafting,
    SimulatedEngine,
    TimedChannel,
    graph_sizes,
    mixed_traffic,
    step_milliseconds,
)
from bench.text import add_traces_option
from draftd.client.client import ChannelClient
from draftd.client.pacing import PacingOptions
from draftd.config import DraftingSettings, EngineSettings
from draftd.demo.sample import trace_files
from draftd.engine import Engine
from draftd.observe import terminal
from draftd.pacing.cost_table import CostTable
from draftd.replay.traces import RecordedRequest, workload_name
from draftd.wire import Namespace

PROCESSES = 2
DEADLINE = 30.0
MOST_NODES = 64  # of a request: the engine's limit by default

# Requests of each recording, by batch: enough that the batch is full for most of the time.
ROUNDS = {1: 8, 8: 20, 32: 40, 64: 60, 128: 80, 256: 120}
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
WIDEST = 1024  # tokens of a step in the true cost table
WIDEST_FIXED = 640  # with a count for each that makes longer steps, twice as dear as a plain one, no batch wins

# By batch; README and CHANGELOG have what was measured.
AGAINST_NONE = {1: 2.0, 8: 2.0, 32: 1.8, 64: 1.6, 128: 1.4, 256: 1.06}
AGAINST_FIXED = {64: 1.04, 128: 1.08, 256: 1.08}
DRAFTER_MILLISECONDS = {128: 1.5, 256: 2.5}
PROFILED_SHARE = 0.98  # of the throughput with the true costs

TRUE_COSTS, PROFILED, SCHEDULE = "true costs", "profiled", "schedule"


@dataclass(frozen=True)
class Way:
    """One way to say how much is drafted. `client` are arguments of the client beyond the usual ones."""

    name: str
    drafting: Drafting
    client: PacingOptions = field(default_factory=PacingOptions)


@dataclass(frozen=True)
class Measured:
    """What came of one way at one batch."""

    batch: int
    way: str
    nodes: int  # most of a request
    steps: int
    emitted: int
    nodes_per_step: float
    speed_up: float  # against none
    drafter_milliseconds: float  # processor time for a step, median


def fixed_counts(batch: int) -> list[int]:
    """Those tried: a grid, and what fills the last step that costs as little as a plain one."""
    filling = max(size for size in graph_sizes(WIDEST) if step_milliseconds(size) == step_milliseconds(1)) // batch - 1
    counts = {*COUNTS, min(filling, MOST_NODES)} - {0, -1}
    return [nodes for nodes in sorted(counts) if nodes == 1 or batch * (1 + nodes) <= WIDEST_FIXED]


def true_costs() -> CostTable:
    sizes = graph_sizes(WIDEST)
    return CostTable(tuple(sizes), tuple(1000 * step_milliseconds(size) for size in sizes))


def ways(batch: int, noise: float) -> list[Way]:
    return [
        *(Way(f"fixed {nodes}", Drafting(nodes)) for nodes in fixed_counts(batch)),
        Way(TRUE_COSTS, Drafting(MOST_NODES), {"pacing": "survival", "cost": true_costs()}),
        Way(PROFILED, Drafting(MOST_NODES, reports_steps=True, noise=noise), {"pacing": "survival"}),
        Way(SCHEDULE, Drafting(MOST_NODES), {"pacing": "schedule", "graph_sizes": graph_sizes(batch)}),
    ]


@cache
def _traffic(folder: Path, rounds: int) -> list[RecordedRequest]:
    return mixed_traffic(folder, rounds)


@contextmanager
def simulated_engine(traffic: Sequence[RecordedRequest], way: Way) -> Iterator[SimulatedEngine]:
    """With a drafter of its own, as by default but for the priors: there are none, since they know these recordings."""
    engine = Engine(EngineSettings(), DraftingSettings(priors="none"))
    channel = TimedChannel(engine)
    try:
        with ChannelClient(
            channel, Namespace(), verifier="bench", deadline=DEADLINE, vocabulary_size=0, **way.client
        ) as client:
            yield SimulatedEngine(client, channel, engine, traffic)
    finally:
        engine.close()


def measure(batch: int, way: Way, folder: Path, rounds: int) -> Measured:
    with simulated_engine(_traffic(folder, rounds), way) as engine:
        done = engine.run(batch, way.drafting)
    if not done.steps:
        raise SystemExit(f"{folder}: the recordings have too few requests for a batch of {batch}")
    return Measured(
        batch,
        way.name,
        way.drafting.nodes,
        done.steps,
        done.emitted,
        done.nodes / done.steps,
        done.speed_up,
        float(np.median(done.drafter_milliseconds)),
    )


def measure_all(batches: Sequence[int], noise: float, folder: Path, rounds: int | None) -> list[Measured]:
    """In two processes, in no order."""
    # Spawned: a forked process would have the locks of the threads, but not the threads.
    spawning = multiprocessing.get_context("spawn")
    columns = (terminal.text_column("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        Progress(*columns, console=terminal.console(stderr=True)) as progress,
        ProcessPoolExecutor(PROCESSES, spawning) as pool,
    ):
        runs = [
            pool.submit(measure, batch, way, folder, rounds or ROUNDS.get(batch, max(ROUNDS.values())))
            for batch in batches
            for way in ways(batch, noise)
        ]
        return [run.result() for run in progress.track(as_completed(runs), len(runs), description="simulating")]


@dataclass(frozen=True)
class Row:
    """One batch."""

    batch: int
    best_fixed: Measured | None  # None: none of them is worth its nodes
    of_ways: Mapping[str, Measured]

    @classmethod
    def of(cls, batch: int, measured: Sequence[Measured]) -> "Row":
        here = [it for it in measured if it.batch == batch]
        fixed = max((it for it in here if it.way.startswith("fixed")), key=lambda it: it.speed_up)
        return cls(batch, fixed if fixed.speed_up > 1 else None, {it.way: it for it in here})

    @property
    def paced(self) -> Measured:
        return self.of_ways[TRUE_COSTS]

    def against_fixed(self) -> float:
        return self.paced.speed_up / (self.best_fixed.speed_up if self.best_fixed else 1.0)

    def missed_targets(self) -> list[str]:
        missed = []
        where = f"batch {self.batch}"
        if self.paced.speed_up < (least := AGAINST_NONE.get(self.batch, 0.0)):
            missed.append(f"{where}: {self.paced.speed_up:.3f}x of no drafts, at least {least:g}x wanted")
        if self.against_fixed() < (least := AGAINST_FIXED.get(self.batch, 0.0)):
            missed.append(f"{where}: {self.against_fixed():.3f}x of the best fixed count, at least {least:g}x wanted")
        if self.paced.drafter_milliseconds > (most := DRAFTER_MILLISECONDS.get(self.batch, np.inf)):
            took = f"{self.paced.drafter_milliseconds:.2f} ms"
            missed.append(f"{where}: the drafter takes {took} of a step, at most {most:g} wanted")
        profiled = self.of_ways[PROFILED].speed_up / self.paced.speed_up
        if profiled < PROFILED_SHARE:
            missed.append(f"{where}: profiled costs give {profiled:.3f}x of the true ones, {PROFILED_SHARE:g}x wanted")
        return missed


def table(rows: Sequence[Row]) -> Table:
    shown = Table(title="Tokens per simulated millisecond, against no drafts", title_justify="left")
    headings = (
        "batch",
        "steps",
        TRUE_COSTS,
        "nodes a step",
        "best fixed",
        "against it",
        PROFILED,
        SCHEDULE,
        "drafter ms",
    )
    for heading in headings:
        shown.add_column(heading, justify="right")
    for row in rows:
        fixed = f"{row.best_fixed.speed_up:.3f}x ({row.best_fixed.nodes} each)" if row.best_fixed else "1.000x (none)"
        shown.add_row(
            str(row.batch),
            f"{row.paced.steps:,}",
            f"{row.paced.speed_up:.3f}x",
            f"{row.paced.nodes_per_step:.1f}",
            fixed,
            f"{row.against_fixed():.3f}x",
            f"{row.of_ways[PROFILED].speed_up:.3f}x",
            f"{row.of_ways[SCHEDULE].speed_up:.3f}x",
            f"{row.paced.drafter_milliseconds:.2f}",
        )
    return shown


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--batch", type=int, nargs="+", default=[*ROUNDS], help="requests at once")
    parser.add_argument("--rounds", type=int, help="requests of each recording; default: by batch")
    parser.add_argument("--noise", type=float, default=0.0, help="of measured step times, as a share of them")
    parser.add_argument("--json", type=Path, help="write all that was measured to this file")
    options = parser.parse_args(arguments)

    measured = measure_all(options.batch, options.noise, options.traces, options.rounds)
    rows = [Row.of(batch, measured) for batch in options.batch]
    console = terminal.console(width=140)
    console.print(table(rows))
    if options.json:
        ordered = sorted(measured, key=lambda it: (it.batch, it.way))
        options.json.write_text(json.dumps([asdict(it) for it in ordered], indent=1) + "\n", encoding="utf-8")
    is_full = options.rounds is None and {*map(workload_name, trace_files(options.traces))} >= {*peers().emitted}
    missed = [miss for row in rows for miss in row.missed_targets()] if is_full else []
    for miss in missed:
        console.print(miss, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
