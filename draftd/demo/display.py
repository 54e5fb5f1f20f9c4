"""What a person sees while the demo runs, and at its end."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

from draftd.demo.streams import Workload
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.table import micros


class TokensPerStep(ProgressColumn):
    """Tokens per verify step so far."""

    def render(self, task: Task) -> Text:
        result: ReplayResult = task.fields["result"]
        return Text(f"{result.emitted_per_step:5.2f} tokens per step" if result.steps else "waiting", style="bold")


class ReplayProgress:
    """A line per workload, live."""

    def __init__(self, workloads: Sequence[Workload], console: Console) -> None:
        self._workloads = workloads
        self.bars = Progress(TextColumn("{task.description}"), BarColumn(), TokensPerStep(), console=console)
        self._tasks = [
            self.bars.add_task(workload.name, total=workload.tokens, result=workload.result) for workload in workloads
        ]

    def update(self) -> None:
        for task, workload in zip(self._tasks, self._workloads, strict=True):
            self.bars.update(task, completed=workload.result.emitted)


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
