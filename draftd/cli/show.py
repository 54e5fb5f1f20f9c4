"""replay, demo: seeing on recorded traffic what drafts are worth."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from draftd.cli.failure import failing_on


def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", dir_okay=False, help="Recorded traffic, .jsonl or .jsonl.gz.")
    ],
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="A server: ipc://, tcp://, grpc:// or unix:; default: in process.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Most drafted nodes of a step; 16 if none is given.")
    ] = None,
    mean_budget: Annotated[int | None, typer.Option(min=1, help="Most drafted nodes of a step on average.")] = None,
    min_survival: Annotated[float, typer.Option(min=0, max=1, help="Nodes less likely than this are not drafted.")] = 0,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests under way at once; of one session never more than one.")
    ] = 1,
    shape: Annotated[Literal["tree", "chain"], typer.Option(help="Shape of the drafts.")] = "tree",
    share: Annotated[
        Literal["outputs", "all", "none"], typer.Option(help="What later requests may draft from.")
    ] = "outputs",
    corpus: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Corpus of token ids to draft from; may be repeated.")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the figures to this file.")] = None,
) -> None:
    """Replay recorded traffic and print what each verify step yields."""
    from draftd.ingest import IngestError, LoaderError
    from draftd.replay import ReplayError, ReplayOptions, TraceError, run

    # ValueError: an argument that a client can't mean, or text that can't be sent. RecursionError: nested too deep.
    with failing_on(IngestError, LoaderError, ReplayError, TraceError, ValueError, RecursionError):
        options = ReplayOptions(
            budget=budget,
            mean_budget=mean_budget,
            min_survival=min_survival,
            concurrency=concurrency,
            shape=shape,
            share=share,
        )
        run(files, options, endpoint=endpoint, corpora=corpus or (), json_file=json)


def demo(quick: Annotated[bool, typer.Option("--quick", help="A tenth of the traffic.")] = False) -> None:
    """Start a server, replay bundled real traffic through it from several verifiers, and show the figures."""
    from draftd.demo.command import run
    from draftd.demo.server import DemoError
    from draftd.replay import ReplayError

    with failing_on(DemoError, ReplayError):
        run(quick=quick)
