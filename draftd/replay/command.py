"""`draftd replay`: every file in turn, then the table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from draftd.client import Client
from draftd.client.local import LocalClient
from draftd.replay.budgets import FixedBudget, MeanBudget, StepBudget
from draftd.replay.client_drafter import ClientDrafter, Shape, Share
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.runner import ReplayError, replay
from draftd.replay.sessions import at_server, corpus_segment, in_process
from draftd.replay.table import report_console, results_table
from draftd.replay.traces import read_trace, workload_name

DEFAULT_BUDGET = 16


def run(
    files: Sequence[Path],
    *,
    endpoint: str | None = None,
    budget: int | None = None,
    mean_budget: int | None = None,
    shape: Shape = "tree",
    share: Share = "outputs",
    corpora: Sequence[Path] = (),
    json_file: Path | None = None,
) -> list[ReplayResult]:
    """Replays the files one after another and prints a table; see `replay_file`.

    Without `endpoint` each file gets an engine in this process, with an index of each file of token ids in `corpora`.
    Raises TraceError, IngestError or ReplayError, whose text is one line for a person.
    """
    if endpoint is not None and corpora:
        raise ReplayError("a corpus file is for a replay in process; for a server use `draftd corpus add`")
    segments = {file.stem: corpus_segment(file) for file in corpora}
    console = report_console()
    results = []
    for file in files:
        workload = workload_name(file)
        drafter = in_process(workload, segments) if endpoint is None else at_server(workload, endpoint)
        with console.status(f"replaying {workload}"), drafter as client:
            results.append(replay_file(file, client, budget=budget, mean_budget=mean_budget, shape=shape, share=share))
    limit = f"a mean of {mean_budget} nodes" if mean_budget else f"at most {budget or DEFAULT_BUDGET} nodes a step"
    console.print(results_table(results, f"{endpoint or 'in process'}, {shape}, {limit}, shared: {share}"))
    if json_file is not None:
        settings = {"budget": budget, "mean_budget": mean_budget, "shape": shape, "share": share}
        _write_json(json_file, settings, results)
    return results


def replay_file(
    file: Path,
    client: Client | LocalClient,
    *,
    budget: int | None = None,
    mean_budget: int | None = None,
    shape: Shape = "tree",
    share: Share = "outputs",
) -> ReplayResult:
    """Replays one file. `budget` limits every step, `mean_budget` the mean over the file; 16 a step without either.

    Raises TraceError or ReplayError.
    """
    if budget is not None and mean_budget is not None:
        raise ReplayError("give a budget or a mean budget, not both")
    limit: StepBudget = MeanBudget(mean_budget) if mean_budget else FixedBudget(budget or DEFAULT_BUDGET)
    result = ReplayResult(workload_name(file))
    replay(read_trace(file), ClientDrafter(client, shape=shape, share=share), limit, result)
    return result


def _write_json(file: Path, settings: Mapping[str, object], results: Sequence[ReplayResult]) -> None:
    report = {
        "settings": settings,
        "geometric_mean": geometric_mean(result.emitted_per_step for result in results),
        "workloads": [result.as_dict() for result in results],
    }
    try:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ReplayError(f"the results cannot be written: {error}") from error
