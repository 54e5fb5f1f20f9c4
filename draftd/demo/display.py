"""What a person sees while the demo runs, and at its end."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress
from rich.table import Table

from draftd.observe.terminal import text_column
from draftd.replay.result import ReplayResult, geometric_mean


class LiveProgress:
    """A line per workload."""

    def __init__(self, totals: Mapping[str, int], console: Console) -> None:
        """`totals`: tokens that each workload's steps will emit."""
        self.bars = Progress(
            text_column("{task.description}"),
            BarColumn(bar_width=32),
            text_column("{task.fields[figure]}"),
            console=console,
        )
        self._tasks = {name: self.bars.add_task(name, total=total, figure="") for name, total in totals.items()}

    def show(self, workload: str, steps: int, emitted: int) -> None:
        figure = f"{emitted / steps:.2f} tokens per step" if steps else ""
        self.bars.update(self._tasks[workload], completed=emitted, figure=figure)


def comparison_table(drafted: Sequence[ReplayResult], looked_up: Sequence[ReplayResult]) -> Table:
    """draftd beside n-gram lookup on the same requests, in the order given; for terminals of 80 columns."""
    table = Table(
        title="draftd | n-gram lookup (2 to 5 tokens)",
        title_justify="left",
        show_footer=True,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    means = [geometric_mean(result.emitted_per_step for result in results) for results in (drafted, looked_up)]
    table.add_column("workload", footer="geometric mean", no_wrap=True)
    table.add_column(
        "tokens per\nverify step", justify="right", footer=f"{means[0]:.2f} | {means[1]:.2f}", style="bold"
    )
    table.add_column("coverage\n%", justify="right")
    table.add_column("accepted\n/ node %", justify="right")
    table.add_column("draft µs\np50/p99", justify="right")
    table.add_column("round trip\nms p50/p99", justify="right")
    for ours, theirs in zip(drafted, looked_up, strict=True):
        table.add_row(
            ours.workload,
            f"{ours.emitted_per_step:.2f} | {theirs.emitted_per_step:.2f}",
            f"{ours.coverage * 100:.0f} | {theirs.coverage * 100:.0f}",
            f"{ours.accepted_per_node * 100:.0f} | {theirs.accepted_per_node * 100:.0f}",
            f"{_percentiles(ours.core_micros)} | {_percentiles(theirs.core_micros)}",
            _percentiles(ours.round_trip_micros, unit=1000, digits=1),
        )
    return table


def _percentiles(micros: list[float], unit: int = 1, digits: int = 0) -> str:
    """`p50/p99`; `unit` is in microseconds."""
    return "/".join(f"{np.percentile(micros, percent) / unit:.{digits}f}" for percent in (50, 99))
