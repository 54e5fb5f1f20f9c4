"""`draftd replay`: every file in turn, then the table."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from draftd.client import Client
from draftd.client.local import LocalClient
from draftd.replay.client_drafter import ClientDrafter
from draftd.replay.options import ReplayOptions
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.runner import ReplayError, replay
from draftd.replay.sessions import at_server, corpus_segment, in_process
from draftd.replay.table import report_console, results_table
from draftd.replay.traces import read_trace, workload_name


def run(
    files: Sequence[Path],
    options: ReplayOptions = ReplayOptions(),  # noqa: B008  (frozen)
    *,
    endpoint: str | None = None,
    corpora: Sequence[Path] = (),
    json_file: Path | None = None,
) -> list[ReplayResult]:
    """Replays the files one after another and prints a table.

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
            results.append(replay_file(file, client, options))
    console.print(results_table(results, f"{endpoint or 'in process'}, {options}"))
    if json_file is not None:
        _write_json(json_file, options, results)
    return results


def replay_file(
    file: Path,
    client: Client | LocalClient,
    options: ReplayOptions = ReplayOptions(),  # noqa: B008  (frozen)
) -> ReplayResult:
    """Replays one file. Raises TraceError or ReplayError."""
    result = ReplayResult(workload_name(file))
    drafter = ClientDrafter(client, shape=options.shape, share=options.share)
    replay(read_trace(file), drafter, options.step_budget(), result, options.concurrency)
    return result


def _write_json(file: Path, options: ReplayOptions, results: Sequence[ReplayResult]) -> None:
    report = {
        "settings": asdict(options),
        "geometric_mean": geometric_mean(result.emitted_per_step for result in results),
        "workloads": [result.as_dict() for result in results],
    }
    try:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ReplayError(f"the results cannot be written: {error}") from error
