"""Results for people: one row per workload."""

import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from draftd.observe.terminal import console
from draftd.replay.result import ReplayResult, geometric_mean, percentile


def report_console() -> Console:
    """Standard output; wide enough for the tables where it is no terminal."""
    return console(width=None if sys.stdout.isatty() else 120)


def results_table(results: Sequence[ReplayResult], title: str) -> Table:
    """Times are microseconds, as p50 / p99."""
    table = Table(title=title, title_justify="left", show_footer=len(results) > 1)
    table.add_column("workload", footer="geometric mean", no_wrap=True)
    table.add_column("requests", justify="right")
    table.add_column("tokens\nper step", justify="right", footer=_mean(results), style="bold")
    table.add_column("coverage", justify="right")
    table.add_column("nodes\nper step", justify="right")
    table.add_column("accepted\nper node", justify="right")
    table.add_column("draft µs", justify="right")
    table.add_column("round trip µs", justify="right")
    for result in results:
        table.add_row(
            result.workload,
            f"{result.requests}",
            f"{result.emitted_per_step:.3f}",
            f"{result.coverage:.0%}",
            f"{result.nodes_per_step:.2f}",
            f"{result.accepted_per_node:.1%}",
            micros(result.core_micros),
            micros(result.round_trip_micros),
        )
    return table


def compared_table(results: Mapping[str, list[ReplayResult]], title: str) -> Table:
    """Presets and draft sources side by side, replayed with the same files: tokens per step | nodes per step."""
    table = Table(title=title, title_justify="left", show_footer=True)
    table.add_column("workload", footer="geometric mean", no_wrap=True)
    for name, of_name in results.items():
        table.add_column(name, justify="right", footer=_mean(of_name), no_wrap=True)
    for row in zip(*results.values(), strict=True):
        figures = (f"{result.emitted_per_step:.3f} | {result.nodes_per_step:4.1f}" for result in row)
        table.add_row(row[0].workload, *figures)
    return table


def micros(values: list[float]) -> str:
    """`p50 / p99`, or a dash where nothing was measured."""
    p50, p99 = percentile(values, 50), percentile(values, 99)
    return "-" if p50 is None or p99 is None else f"{p50:.0f} / {p99:.0f}"


def _mean(results: Sequence[ReplayResult]) -> str:
    return f"{geometric_mean(result.emitted_per_step for result in results):.3f}"
