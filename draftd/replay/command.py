"""`draftd replay`: every file in turn, then the table."""

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from rich.text import Text

from draftd.client import Client
from draftd.client.local import LocalClient
from draftd.observe import terminal
from draftd.replay.client_drafter import ClientDrafter
from draftd.replay.drawing import draw, require_matplotlib
from draftd.replay.options import COMPARED, ReplayOptions
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.runner import ReplayError, replay
from draftd.replay.sessions import Drafters
from draftd.replay.source_drafter import drafter_named
from draftd.replay.table import compared_table, report_console, results_table
from draftd.replay.traces import read_trace, workload_name

DEFAULT_OPTIONS = ReplayOptions()


def run(
    files: Sequence[Path],
    options: ReplayOptions = DEFAULT_OPTIONS,
    *,
    endpoint: str | None = None,
    corpora: Sequence[Path] = (),
    in_flight: bool = True,
    priors: str | None = None,
    json_file: Path | None = None,
    svg_file: Path | None = None,
) -> list[ReplayResult]:
    """Replays the files one after another and prints a table.

    Without `endpoint` each file gets an engine in this process, with an index of each file of token ids in `corpora`;
    Drafters tells of the options.
    `json_file` gets the figures, `svg_file` a drawing of how far survival can be trusted.
    Raises TraceError, IngestError or ReplayError, whose text is one line for a person.
    """
    if svg_file is not None:
        require_matplotlib()
    _require_writable(json_file, svg_file)
    drafters = Drafters(endpoint, corpora, in_flight=in_flight, priors=priors)
    with _what_is_left(drafters):
        results = _replay_all(files, options, drafters)
    report_console().print(results_table(results, f"{drafters}, {options}"))
    if json_file is not None:
        _write_json(json_file, {"settings": asdict(options) | drafters.as_dict(), **_figures(results)})
    if svg_file is not None:
        draw(results, svg_file)
    return results


def compare(
    files: Sequence[Path],
    options: ReplayOptions = DEFAULT_OPTIONS,
    drafted_by: Sequence[str] = COMPARED,
    *,
    endpoint: str | None = None,
    corpora: Sequence[Path] = (),
    in_flight: bool = True,
    priors: str | None = None,
    json_file: Path | None = None,
) -> dict[str, list[ReplayResult]]:
    """Replays the files once with each preset or draft source and prints one table; otherwise as `run`."""
    asked = {word: options.drafted_by(word) for word in drafted_by}
    _require_writable(json_file)
    drafters = Drafters(endpoint, corpora, in_flight=in_flight, priors=priors)
    with _what_is_left(drafters):
        results = {word: _replay_all(files, options, drafters) for word, options in asked.items()}
    report_console().print(compared_table(results, f"Tokens per step | nodes per step; {drafters}, {options}"))
    if json_file is not None:
        of_each = {word: _figures(of_word) for word, of_word in results.items()}
        _write_json(json_file, {"settings": asdict(options) | drafters.as_dict(), "presets": of_each})
    return results


def replay_file(
    file: Path, client: Client | LocalClient | None, options: ReplayOptions = DEFAULT_OPTIONS
) -> ReplayResult:
    """Replays one file; a client is needed unless a draft source is asked. Raises TraceError or ReplayError."""
    result = ReplayResult(workload_name(file))
    requests = islice(read_trace(file), options.requests)
    budget = options.step_budget()
    if options.source is not None:
        with drafter_named(options.source) as source:
            replay(requests, source, budget, result, options.concurrency)
    else:
        assert client is not None
        drafter = ClientDrafter(client, shape=options.shape, share=options.share, preset=options.preset)
        replay(requests, drafter, budget, result, options.concurrency)
    return result


def _replay_all(files: Sequence[Path], options: ReplayOptions, drafters: Drafters) -> list[ReplayResult]:
    console = report_console()
    results = []
    for file in files:
        with console.status(Text(f"replaying {workload_name(file)} {options.preset or options.source or ''}")):
            if options.source is not None:
                results.append(replay_file(file, None, options))
                continue
            with drafters.client(workload_name(file)) as client:
                results.append(replay_file(file, client, options))
    return results


@contextmanager
def _what_is_left(drafters: Drafters) -> Iterator[None]:
    """Says at the end, on standard error, how a server is rid of what the replays left there."""
    try:
        yield
    finally:
        console = terminal.console(stderr=True)
        for left in drafters.left:
            whose = shlex.join(["--tenant", left.tenant, "--model", left.model])
            console.print(
                f"the server keeps this replay; delete it: draftd corpus delete --history --yes {whose}", soft_wrap=True
            )


def _require_writable(*files: Path | None) -> None:
    """Before anything is replayed. Raises ReplayError."""
    for file in files:
        if file is not None:
            there = file.exists()
            try:
                file.open("ab").close()
                if not there:
                    file.unlink()
            except OSError as error:
                raise ReplayError(f"the results cannot be written: {error}") from error


def _figures(results: Sequence[ReplayResult]) -> dict[str, object]:
    return {
        "geometric_mean": geometric_mean(result.emitted_per_step for result in results),
        "workloads": [result.as_dict() for result in results],
    }


def _write_json(file: Path, report: dict[str, object]) -> None:
    try:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ReplayError(f"the results cannot be written: {error}") from error
