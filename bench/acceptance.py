"""What a verify step yields on recorded traffic, beside the best that others were measured at.

    python -m bench.acceptance [--traces DIR] [--budgets 8 16]

Every file of the folder is replayed in process, shared outputs, one request at a time. bench/peers.json has the
others' figures on the full recordings, which don't depend on the machine; a file that is only the start of a recording
shows its own figure without theirs. Ends with status 1 if a target is missed.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.text import add_traces_option
from draftd.demo.sample import trace_files
from draftd.replay.command import replay_file
from draftd.replay.options import ReplayOptions
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.sessions import in_process
from draftd.replay.traces import workload_name

PEERS = Path(__file__).with_name("peers.json")
LEAST_OF_BEST = 0.98  # of the best other's figure, on every workload
GEOMETRIC_MEAN_TARGETS = {8: 2.15, 16: 2.35}  # over all recordings that peers.json knows


@dataclass(frozen=True)
class Comparison:
    """A workload at one budget. `best` and `peer` are the best other's figure and name; None if not comparable."""

    result: ReplayResult
    best: float | None
    peer: str | None

    @property
    def share_of_best(self) -> float | None:
        return self.result.emitted_per_step / self.best if self.best else None

    @property
    def falls_short(self) -> bool:
        return self.share_of_best is not None and self.share_of_best < LEAST_OF_BEST


def compare(result: ReplayResult, figures: dict[str, dict[str, float]], emitted: dict[str, int]) -> Comparison:
    """`figures`: peer -> workload -> tokens per step at this budget; `emitted`: tokens of each full recording."""
    if emitted.get(result.workload) != result.emitted:
        return Comparison(result, None, None)
    peer = max(figures, key=lambda name: figures[name][result.workload])
    return Comparison(result, figures[peer][result.workload], peer)


def replayed(path: Path, budget: int) -> ReplayResult:
    with in_process(workload_name(path), corpora={}) as client:
        return replay_file(path, client, ReplayOptions(budget=budget))


def comparison_table(comparisons: list[Comparison], budget: int) -> Table:
    table = Table(title=f"Tokens per verify step, at most {budget} nodes", title_justify="left", show_footer=True)
    mean = geometric_mean(comparison.result.emitted_per_step for comparison in comparisons)
    table.add_column("workload", footer="geometric mean", no_wrap=True)
    table.add_column("draftd", justify="right", footer=f"{mean:.3f}", style="bold")
    table.add_column("best other", justify="right")
    table.add_column("share of best", justify="right")
    table.add_column("who", no_wrap=True)
    for comparison in comparisons:
        share = comparison.share_of_best
        table.add_row(
            comparison.result.workload,
            f"{comparison.result.emitted_per_step:.3f}",
            "-" if comparison.best is None else f"{comparison.best:.3f}",
            "-" if share is None else f"{share:.3f}{' short' if comparison.falls_short else ''}",
            comparison.peer or "only the start of the recording",
        )
    return table


def missed_targets(comparisons: list[Comparison], budget: int, recordings: int) -> list[str]:
    """`recordings`: how many there are in full; the mean has a target only over all of them."""
    missed = [
        f"{comparison.result.workload}: {comparison.share_of_best:.3f} of the best other, {LEAST_OF_BEST} wanted"
        for comparison in comparisons
        if comparison.falls_short
    ]
    mean = geometric_mean(comparison.result.emitted_per_step for comparison in comparisons)
    target = GEOMETRIC_MEAN_TARGETS.get(budget)
    if target and sum(comparison.best is not None for comparison in comparisons) == recordings and mean < target:
        missed.append(f"geometric mean: {mean:.3f}, {target} wanted")
    return [f"at {budget} nodes: {line}" for line in missed]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--budgets", type=int, nargs="+", default=[8, 16], choices=[8, 16], help="nodes per step")
    options = parser.parse_args(arguments)

    peers = json.loads(PEERS.read_text(encoding="utf-8"))
    console = Console(width=110)
    missed: list[str] = []
    for budget in options.budgets:
        comparisons = [
            compare(replayed(path, budget), peers["tokens_per_step"][str(budget)], peers["emitted"])
            for path in trace_files(options.traces)
        ]
        console.print(comparison_table(comparisons, budget))
        missed += missed_targets(comparisons, budget, len(peers["emitted"]))
    for line in missed:
        console.print(line, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
