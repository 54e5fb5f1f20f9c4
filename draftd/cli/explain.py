"""explain: why a text would get the draft that it gets from a running server."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from draftd.cli.address import Adapter, Model, Tenant, Tokenizer, Url, namespace, server
from draftd.cli.failure import Failure, failing_on
from draftd.cli.http import HttpError, call
from draftd.cli.options import ConfigFile
from draftd.observe.terminal import console

PIPED_WIDTH = 240  # characters


def explain(
    text: Annotated[str | None, typer.Option(help="The text so far; needs a tokenizer on the server.")] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="A file with that text.")] = None,
    tokens: Annotated[str | None, typer.Option(metavar='"1 2 3"', help="The text so far as token ids.")] = None,
    output_tokens: Annotated[
        int | None, typer.Option(min=0, help="How many of its last tokens the request has generated. [default: 1]")
    ] = None,
    group: Annotated[str, typer.Option(help="Group of the request, whose history it reads.")] = "",
    history: Annotated[bool, typer.Option("--history/--no-history", help="Does it read the history?")] = True,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Corpus that it reads; may be repeated. Default: all.")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Most nodes; beyond engine.max_nodes they count as that.")] = 16,
    chain: Annotated[bool, typer.Option("--chain", help="A chain instead of a tree.")] = False,
    stop_id: Annotated[list[int] | None, typer.Option(metavar="TOKEN", help="Ends a text; may be repeated.")] = None,
    preset: Annotated[
        Literal["learned", "suffix_decoding", "ngram_bfs", "ngram_prob"] | None,
        typer.Option(help="How the draft is made; default: as the server is configured."),
    ] = None,
    max_depth: Annotated[int | None, typer.Option(min=1, help="Most nodes on one path.")] = None,
    max_breadth: Annotated[int | None, typer.Option(min=1, help="Most children of one node.")] = None,
    min_survival: Annotated[
        float | None, typer.Option(min=0, max=1, help="Nodes less likely than this are not drafted.")
    ] = None,
    max_spec_factor: Annotated[
        float | None, typer.Option(min=0, help="Of suffix_decoding: most nodes for each token of the match.")
    ] = None,
    min_token_prob: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of suffix_decoding: nodes below are not drafted.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Show the draft that a request of this text would get now, and what each text that it reads knows of each node.

    The text comes from --text, --file, --tokens, or standard input. Nothing is changed on the server."""
    question: dict[str, Any] = {
        "output_tokens": output_tokens,
        "group": group,
        "history": history,
        "corpora": corpus,
        "stop_ids": stop_id or [],
        "max_nodes": nodes,
        "shape": "chain" if chain else "tree",
        "preset": preset,
        "max_depth": max_depth,
        "max_breadth": max_breadth,
        "min_survival": min_survival,
        "max_spec_factor": max_spec_factor,
        "min_token_prob": min_token_prob,
    }
    question |= _text(text, file, tokens) | namespace(tenant, model, adapter, tokenizer)
    with failing_on(HttpError):
        reply = call(f"{server(http, config)}/explain", json.dumps(question).encode())
    if as_json:
        typer.echo(json.dumps(reply))
        return
    from draftd.cli.explanation import rendered

    # What is piped on is not cut to the width of a terminal.
    console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(rendered(reply))


def _text(text: str | None, file: Path | None, tokens: str | None) -> dict[str, Any]:
    """The field of the call that holds it. Raises Failure."""
    if (text is not None) + (file is not None) + (tokens is not None) > 1:
        raise Failure("give one of --text, --file and --tokens")
    if tokens is not None:
        return {"token_ids": _ids(tokens)}
    if text is not None:
        return {"text": text}
    with failing_on(OSError):
        content = sys.stdin.buffer.read() if file is None else file.read_bytes()
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError as error:
        raise Failure(f"{file or 'standard input'}: not UTF-8 at byte {error.start}") from None


def _ids(tokens: str) -> list[int]:
    """Raises Failure."""
    ids = []
    for word in tokens.replace(",", " ").split():
        try:
            ids.append(int(word))
        except ValueError:
            raise Failure(f"--tokens: {word!r} is no token id; give them like '1 2 3'") from None
    return ids
