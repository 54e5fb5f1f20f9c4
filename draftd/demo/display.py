"""What a person sees while the demo runs, and at its end."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.table import micros


class LiveProgress:
    """A line per workload."""

    def __init__(self, totals: Mapping[str, int], console: Console) -> None:
        """`totals`: tokens that each workload's steps will emit."""
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figure]}"), console=console
        )
        self._tasks = {name: self.bars.add_task(name, total=total, figure="") for name, total in totals.items()}

    def show(self, workload: str, steps: int, emitted: int) -> None:
        figure = f"{emitted / steps:.2f} tokens per step" if steps else ""
        self.bars.update(self._tasks[workload], completed=emitted, figure=figure)


def comparison_table(drafted: Sequence[ReplayResult], looked_up: Sequence[ReplayResult]) -> Table:
    """draftd beside n-gram lookup on the same requests, in the order given."""
    table = Table(title="draftd | n-gram lookup (2 to 5 tokens)", title_justify="left", show_footer=True)
    means = [geometric_mean(result.emitted_per_step for result in results) for results in (drafted, looked_up)]
    table.add_column("workload", footer="geometric mean", no_wrap=True)
    table.add_column(
        "tokens per\nverify step", justify="right", footer=f"{means[0]:.2f} | {means[1]:.2f}", style="bold"
    )
    table.add_column("coverage", justify="right")
    table.add_column("accepted per\ndrafted node", justify="right")
    table.add_column("draft µs\np50/p99", justify="right")
    table.add_column("round trip µs\np50/p99", justify="right")
    for ours, theirs in zip(drafted, looked_up, strict=True):
        table.add_row(
            ours.workload,
            f"{ours.emitted_per_step:.2f} | {theirs.emitted_per_step:.2f}",
            f"{ours.coverage:.0%} | {theirs.coverage:.0%}",
            f"{ours.accepted_per_node:.0%} | {theirs.accepted_per_node:.0%}",
            f"{micros(ours.core_micros)} | {micros(theirs.core_micros)}",
            micros(ours.round_trip_micros),
        )
    return table
