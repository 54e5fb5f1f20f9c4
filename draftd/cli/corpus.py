"""corpus add, list, remove: the external corpora of a running server, over HTTP."""

import json
import urllib.parse
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from draftd.cli.failure import Failure, failing_on
from draftd.cli.http import HttpError, call
from draftd.cli.options import ConfigFile
from draftd.config import ConfigError, load_settings

commands = typer.Typer(help="External corpora of a running server.", no_args_is_help=True)

Url = Annotated[
    str | None,
    typer.Option("--http", metavar="URL", help="The server; default: listen.http of the config and environment."),
]
Tenant = Annotated[str, typer.Option(help="Tenant it belongs to.")]
Model = Annotated[str, typer.Option(help="Model it belongs to.")]
Adapter = Annotated[str, typer.Option(help="Adapter it belongs to.")]
Tokenizer = Annotated[
    str | None, typer.Option(metavar="FINGERPRINT", help="Tokenizer it belongs to; default: the model's, or none.")
]


@commands.command("add")
def add(
    corpus_id: Annotated[str, typer.Argument(metavar="ID", help="Name of the new corpus.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=".jsonl, .txt, .npz or .npy files.")],
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Post the documents of all files as one corpus; drafts use it when this returns."""
    from draftd.cli.upload import UploadError, upload

    url = f"{_server(http, config)}/add_external_corpus"
    address = {"corpus_id": corpus_id, **_namespace(tenant, model, adapter, tokenizer)}
    with failing_on(HttpError, UploadError, OSError):
        reply = upload(url, address, files)
    typer.echo(reply["message"])


@commands.command("list")
def list_corpora(
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """List the corpora of a tenant's model."""
    query = urllib.parse.urlencode(_namespace(tenant, model, adapter, tokenizer))
    with failing_on(HttpError):
        reply = call(f"{_server(http, config)}/list_external_corpora?{query}")
    table = Table("corpus", "tokens")
    table.columns[1].justify = "right"
    for corpus_id, tokens in reply["corpus_token_counts"].items():
        table.add_row(corpus_id, f"{tokens:,}")
    Console().print(table)


@commands.command("remove")
def remove(
    corpus_id: Annotated[str, typer.Argument(metavar="ID", help="Name of the corpus.")],
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Remove a corpus; no draft uses it when this returns."""
    body = {"corpus_id": corpus_id, **_namespace(tenant, model, adapter, tokenizer)}
    with failing_on(HttpError):
        reply = call(f"{_server(http, config)}/remove_external_corpus", json.dumps(body).encode())
    typer.echo(reply["message"])


def _namespace(tenant: str, model: str, adapter: str, tokenizer: str | None) -> dict[str, str]:
    stated = {} if tokenizer is None else {"tokenizer": tokenizer}
    return {"tenant": tenant, "model": model, "adapter": adapter} | stated


def _server(url: str | None, config: Path | None) -> str:
    if url is not None:
        return url.rstrip("/") if "://" in url else f"http://{url}"
    with failing_on(ConfigError):
        address = load_settings(config).listen.http
    if not address:
        raise Failure("the config turns HTTP off; give the server with --http")
    host, _, port = address.rpartition(":")
    return f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{port}"
