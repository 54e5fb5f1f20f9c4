"""corpus add, list, remove, delete, export, import: what a running server drafts from, over HTTP."""

import json
import time
import urllib.parse
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from draftd.cli.failure import Failure, failing_on
from draftd.cli.http import HttpError, call, download
from draftd.cli.options import ConfigFile
from draftd.config import ConfigError, load_settings

commands = typer.Typer(help="External corpora of a running server.", no_args_is_help=True)

CHUNK = 1 << 20  # bytes

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
    corpus_id: Annotated[str, typer.Argument(metavar="ID", help="Name of the corpus; it is made if there is none.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help=".jsonl, .parquet, .txt, .npz or .npy files, also with .gz or .zst, and folders of texts.",
        ),
    ],
    new: Annotated[bool, typer.Option("--new", help="Fail if there is such a corpus already.")] = False,
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Add the documents of all files, or none of them, to a corpus; drafts use them when this returns."""
    from draftd.cli.upload import Upload, UploadError

    query = _namespace(tenant, model, adapter, tokenizer) | ({"mode": "create"} if new else {})
    with failing_on(HttpError, UploadError, OSError):
        job = Upload(_server(http, config), corpus_id, query).run(files)
    typer.echo(f"{job['documents']} documents with {job['tokens']} tokens are added to corpus {corpus_id!r}")


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
    _post(
        "remove_external_corpus", {"corpus_id": corpus_id} | _namespace(tenant, model, adapter, tokenizer), http, config
    )


@commands.command("delete")
def delete(
    corpus_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Name of the corpus; none: with --history.")
    ] = None,
    document: Annotated[list[str] | None, typer.Option(metavar="ID", help="Document of it; may be repeated.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Delete from what finished requests left.")] = False,
    group: Annotated[str | None, typer.Option(help="Group of the history; default: all of them.")] = None,
    request: Annotated[list[str] | None, typer.Option(metavar="ID", help="Request of it; may be repeated.")] = None,
    older_than: Annotated[float | None, typer.Option(metavar="SECONDS", help="Only what is older.")] = None,
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Delete documents: no draft has their text, and the disk doesn't hold it, when this returns."""
    if not history and document is None and older_than is None:
        raise Failure("say what to delete: --document or --older-than; `draftd corpus remove` removes a whole corpus")
    given: dict[str, Any] = {
        "corpus_id": corpus_id,
        "document_ids": document,
        "group": group,
        "request_ids": request,
        "older_than": None if older_than is None else int(time.time() - older_than),
    }
    fields = {name: value for name, value in given.items() if value is not None} | {"history": history}
    _post("delete_documents", fields | _namespace(tenant, model, adapter, tokenizer), http, config)


@commands.command("export")
def export(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; one that is there is replaced.")],
    http: Url = None,
    tenant: Tenant = "default",
    model: Model = "default",
    adapter: Adapter = "",
    tokenizer: Tokenizer = None,
    config: ConfigFile = None,
) -> None:
    """Write the corpora and histories of a tenant's model to one file."""
    query = urllib.parse.urlencode(_namespace(tenant, model, adapter, tokenizer))
    part = archive.with_name(f"{archive.name}.part")
    with failing_on(HttpError, OSError), download(f"{_server(http, config)}/export?{query}") as reply:
        with part.open("wb") as file:
            while chunk := reply.read(CHUNK):
                file.write(chunk)
            size = file.tell()
        if size != int(reply.headers["content-length"]):
            raise HttpError(f"{archive}: the connection broke after {size} bytes")
        part.replace(archive)
    typer.echo(f"{archive}: {size} bytes")


@commands.command("import")
def import_(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="File that `draftd corpus export` wrote.")],
    http: Url = None,
    config: ConfigFile = None,
) -> None:
    """Add what was exported, under the names that it had."""
    with failing_on(HttpError, OSError), archive.open("rb") as file:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(archive.stat().st_size)}
        reply = call(f"{_server(http, config)}/import", file, headers)
    typer.echo(reply["message"])


def _post(path: str, fields: dict[str, Any], http: str | None, config: Path | None) -> None:
    with failing_on(HttpError):
        reply = call(f"{_server(http, config)}/{path}", json.dumps(fields).encode())
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
