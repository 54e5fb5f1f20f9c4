"""replay, demo: seeing what drafts are worth, on recorded traffic and with a model."""

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
    requests: Annotated[int | None, typer.Option(min=1, help="Replay only the first requests of each file.")] = None,
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
    in_flight: Annotated[
        bool, typer.Option("--in-flight/--no-in-flight", help="Draft from what other requests under way have said.")
    ] = True,
    priors: Annotated[
        str | None, typer.Option(metavar="WHAT", help="What drafting starts with: shipped, none, or a file.")
    ] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Corpus of token ids to draft from; may be repeated.")
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="learned, suffix_decoding, ngram_bfs, ngram_prob; or a draft source by itself: ngram, or one that is "
            "installed. Repeated with --compare.",
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Replay with each preset and ngram, and print one table.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Draw reliability and accepted positions into this file.")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the figures to this file.")] = None,
) -> None:
    """Replay recorded traffic and print what each verify step yields."""
    from draftd.ingest import IngestError, LoaderError
    from draftd.replay import ReplayError, ReplayOptions, TraceError, run
    from draftd.replay import compare as compare_presets
    from draftd.replay.options import COMPARED

    # ValueError: an argument that a client can't mean, or text that can't be sent. RecursionError: nested too deep.
    with failing_on(IngestError, LoaderError, ReplayError, TraceError, ValueError, RecursionError):
        options = ReplayOptions(
            requests=requests,
            budget=budget,
            mean_budget=mean_budget,
            min_survival=min_survival,
            concurrency=concurrency,
            shape=shape,
            share=share,
        )
        words = preset or ()
        if svg is not None and compare:
            raise ReplayError("--svg draws one preset: leave out --compare")
        if len(words) > 1 and not compare:
            raise ReplayError("several presets are for --compare")
        if compare:
            compare_presets(
                files,
                options,
                words or COMPARED,
                endpoint=endpoint,
                corpora=corpus or (),
                in_flight=in_flight,
                priors=priors,
                json_file=json,
            )
        else:
            run(
                files,
                options.drafted_by(words[0]) if words else options,
                endpoint=endpoint,
                corpora=corpus or (),
                in_flight=in_flight,
                priors=priors,
                json_file=json,
                svg_file=svg,
            )


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the traffic, or a quarter of the text.")] = False,
    model: Annotated[
        Literal["smollm2"] | None,
        typer.Option(help="Let this model generate, with drafts and without: needs draftd[verify]."),
    ] = None,
) -> None:
    """Start a server, replay bundled real traffic through it from several verifiers, and show the figures."""
    from draftd.demo.command import run
    from draftd.demo.model_packages import require_packages
    from draftd.demo.server import DemoError
    from draftd.replay import ReplayError

    with failing_on(DemoError, ReplayError):
        if model is None:
            run(quick=quick)
        else:
            require_packages()
            typer.echo("loading SmolLM2-135M-Instruct ...")  # at once: to import torch alone takes seconds
            from draftd.demo.generation import generate

            generate(quick=quick)
