"""corpus add, list, remove, export, import: what a running server drafts from, over HTTP."""

import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.table import Table

from draftd.cli.address import Adapter, Model, Tenant, Tokenizer, Url, namespace, post, server
from draftd.cli.delete import delete
from draftd.cli.failure import failing_on
from draftd.cli.http import HttpError, call, download
from draftd.cli.options import ConfigFile
from draftd.cli.progress import progress_in_bytes
from draftd.observe.terminal import console
from draftd.observe.words import counted

commands = typer.Typer(help="External corpora of a running server.", no_args_is_help=True)


@commands.command("add")
def add(
    corpus_id: Annotated[str, typer.Argument(metavar="ID", help="Name of the corpus; it is made if there is none.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help=".jsonl, .parquet, .npz, .npy, .txt or .md files, also with .gz or .zst, and folders of texts.",
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

    query = namespace(tenant, model, adapter, tokenizer) | ({"mode": "create"} if new else {})
    with failing_on(HttpError, UploadError, OSError):
        job = Upload(server(http, config), corpus_id, query).run(files)
    added = f"{counted(job['documents'], 'document')} with {counted(job['tokens'], 'token')}"
    typer.echo(f"added {added} to corpus {corpus_id!r}")


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
    query = urllib.parse.urlencode(namespace(tenant, model, adapter, tokenizer))
    with failing_on(HttpError):
        reply = call(f"{server(http, config)}/list_external_corpora?{query}")
    if not reply["corpus_token_counts"]:
        typer.echo(f"tenant {tenant!r} has no corpus for model {model!r}", err=True)
        return
    table = Table("corpus", "tokens")
    table.columns[1].justify = "right"
    for corpus_id, tokens in reply["corpus_token_counts"].items():
        table.add_row(corpus_id, f"{tokens:,}")
    console().print(table)


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
    fields = {"corpus_id": corpus_id} | namespace(tenant, model, adapter, tokenizer)
    post(server(http, config), "remove_external_corpus", fields)


commands.command("delete")(delete)


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
    query = urllib.parse.urlencode(namespace(tenant, model, adapter, tokenizer))
    with failing_on(HttpError, OSError), _replacing(archive) as file, progress_in_bytes() as progress:
        task = progress.add_task("export", total=None)
        for part, total in download(f"{server(http, config)}/export?{query}"):
            file.write(part)
            progress.update(task, advance=len(part), total=total)
        size = file.tell()
    typer.echo(f"{archive}: {counted(size, 'byte')}")


@commands.command("import")
def import_(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="File that `draftd corpus export` wrote.")],
    http: Url = None,
    config: ConfigFile = None,
) -> None:
    """Add what was exported, under the names that it had."""
    with failing_on(HttpError, OSError), archive.open("rb") as file, progress_in_bytes() as progress:
        size = archive.stat().st_size
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        watched = progress.wrap_file(file, size, description="import")
        reply = call(f"{server(http, config)}/import", watched, headers)
    typer.echo(reply["message"])


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """What is written becomes the file when the context is left without an error."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        try:
            yield file
        except BaseException:
            part.unlink()
            raise
    part.replace(path)
