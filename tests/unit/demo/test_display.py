"""The demo's figures on a terminal of 80 columns."""

import io

from rich.console import Console

from draftd.demo.display import LiveProgress, comparison_table
from draftd.demo.sample import trace_files
from draftd.replay.result import ReplayResult
from draftd.replay.traces import workload_name

NAMES = [workload_name(path) for path in trace_files()]


def result(name: str, core: list[float], round_trip: list[float]) -> ReplayResult:
    return ReplayResult(
        name,
        steps=100,
        emitted=435,
        accepted=335,
        drafted=1340,
        covered_steps=57,
        core_micros=core,
        round_trip_micros=round_trip,
    )


def terminal() -> Console:
    return Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)


def printed(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_table_is_whole_in_80_columns() -> None:
    drafted = [result(name, [0.0, 198.0], [500.0, 99_900.0]) for name in NAMES]
    looked_up = [result(name, [3.0, 20.0], []) for name in NAMES]
    console = terminal()
    console.print(comparison_table(drafted, looked_up))
    lines = [" ".join(line.split()) for line in printed(console)]
    for name in NAMES:
        assert f"{name} 4.35 | 4.35 57 | 57 25 | 25 99/196 | 12/20 50.2/98.9" in lines


def test_the_live_progress_is_whole_in_80_columns() -> None:
    console = terminal()
    progress = LiveProgress(dict.fromkeys(NAMES, 100), console)
    with progress.bars:
        for name in NAMES:
            progress.show(name, steps=10, emitted=100)
    assert sum(line.endswith("10.00 tokens per step") for line in map(str.rstrip, printed(console))) >= len(NAMES)
