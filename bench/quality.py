"""The quality of drafts: every figure that draftd promises, measured.

    python -m bench.quality --traces DIR --corpora DIR [--markdown FILE] [--json FILE]

Replays every recording of the folder with every budget, two at a time, in some minutes. What is compared with others'
figures (bench/peers.json) needs the whole recordings; for the sample that comes with draftd, and with --quick, the rest
is shown. All figures are of the default configuration, whose hash is printed with them, but for the priors: there are
none, or with --priors those that were learned from recordings of other sources. Ends with status 1 if a target is
missed.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from bench.figures import (
    Row,
    Traffic,
    at_threshold,
    beside_peers,
    calibration,
    geometric_means,
    in_flight,
    priors_on_new_traffic,
    with_corpora,
)
from bench.peers import peers
from bench.replays import Replays
from bench.text import add_traces_option
from bench.train_priors import priors_without
from draftd.config import DraftingSettings, default_config
from draftd.demo.sample import SAMPLE, trace_files
from draftd.observe import terminal
from draftd.priors import read_priors
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.traces import workload_name

QUICK_REQUESTS = 4
FIGURES: tuple[Callable[[Replays, Traffic], list[Row]], ...] = (
    geometric_means,
    beside_peers,
    in_flight,
    with_corpora,
    calibration,
    at_threshold,
    priors_on_new_traffic,
)
MARKS = {True: "yes", False: "NO", None: ""}


def configuration_hash() -> str:
    """Of all that a default engine drafts by: the settings, the priors, and the version of the code."""
    digest = hashlib.sha256(default_config().encode())
    digest.update(read_priors(DraftingSettings().priors))
    digest.update(version("draftd").encode())
    return digest.hexdigest()[:12]


def figures_table(rows: Sequence[Row]) -> Table:
    table = Table(title=f"Draft quality, configuration {configuration_hash()}", title_justify="left", show_lines=True)
    for heading in ("figure", "measured", "at least", "aim", "met", "configuration"):
        table.add_column(heading)
    configuration = configuration_hash()
    for row in rows:
        table.add_row(row.figure, row.measured, row.least, row.aim, MARKS[row.met], configuration)
    return table


def workload_cells(replays: Replays, traffic: Traffic) -> list[list[str]]:
    """A line for each workload, as cells: tokens per step at both budgets beside the best peer, nodes, calibration."""
    at_16, at_8 = (replays.of(traffic.replays(budget=budget)) for budget in (16, 8))
    lines = []
    for sixteen, eight in zip(at_16, at_8, strict=True):
        best = [_beside_best(result, budget) for result, budget in ((sixteen, 16), (eight, 8))]
        lines.append([sixteen.workload, *best, f"{sixteen.nodes_per_step:.1f}", f"{sixteen.calibration.error:.4f}"])
    means = [f"{geometric_mean(result.emitted_per_step for result in results):.3f}" for results in (at_16, at_8)]
    return [*lines, ["geometric mean", *means, "", ""]]


def _beside_best(result: ReplayResult, budget: int) -> str:
    ours = f"{result.emitted_per_step:.3f}"
    if peers().emitted.get(result.workload) != result.emitted:
        return ours
    name, best = peers().best(result.workload, budget)
    return f"{ours} ({result.emitted_per_step / best:.2f}x {name.split()[0]})"


WORKLOAD_HEADINGS = ("workload", "budget 16 (best peer)", "budget 8 (best peer)", "nodes of 16", "calibration error")


def markdown(rows: Sequence[Row], workloads: Sequence[Sequence[str]]) -> str:
    """Both tables, for a README."""
    configuration = configuration_hash()
    lines = ["| figure | measured | at least | aim | configuration |", "|---|---|---|---|---|"]
    lines += [f"| {row.figure} | {row.measured} | {row.least} | {row.aim} | {configuration} |" for row in rows]
    lines += ["", f"| {' | '.join(WORKLOAD_HEADINGS)} |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |" for cells in workloads]
    return "\n".join([*lines, ""])


def leave_one_out(traces: Path, cache: Path) -> dict[str, Path]:
    """Priors for each workload, learned from the recordings of other sources."""
    return {name: priors_without(traces, name, cache) for name in map(workload_name, trace_files(traces))}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--corpora", type=Path, default=SAMPLE, help="folder with gsm8k_train.npz and pystdlib.npz")
    parser.add_argument(
        "--priors", type=Path, help="folder for priors that know nothing of a workload's source; made if not there"
    )
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK_REQUESTS} requests of each recording")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--json", type=Path, help="write the figures, with the command for each, to this file")
    options = parser.parse_args(arguments)

    console = terminal.console(width=140)
    with tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder, Replays() as replays:
        traffic = Traffic(
            traces=trace_files(options.traces),
            corpora={path.stem: path for path in options.corpora.glob("*.npz")},
            folder=Path(folder),
            requests=QUICK_REQUESTS if options.quick else None,
            priors=leave_one_out(options.traces, options.priors) if options.priors else {},
        )
        rows: list[Row] = []
        for figures in FIGURES:
            for row in figures(replays, traffic):
                console.print(f"{row.figure}: {row.measured}", highlight=False)
                rows.append(row)
        workloads = workload_cells(replays, traffic)
    console.print(figures_table(rows))
    table = Table(*WORKLOAD_HEADINGS, title="Tokens per step", title_justify="left")
    for cells in workloads:
        table.add_row(*cells)
    console.print(table)
    if options.markdown:
        options.markdown.write_text(markdown(rows, workloads), encoding="utf-8")
    if options.json:
        report = {"configuration": configuration_hash(), "rows": [asdict(row) for row in rows], "workloads": workloads}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if any(row.met is False for row in rows) else 0)


if __name__ == "__main__":
    main()
