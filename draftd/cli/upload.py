"""Posting files as one corpus, with progress on standard error."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn

from draftd.cli.http import call
from draftd.ingest.documents import Document, read_file
from draftd.ingest.problem import IngestError

# The server knows its own limit; here a file is only read.
MAX_TOKENS = 2**31 - 2


class UploadError(Exception):
    """A file can't be posted. The text is one line."""


def upload(url: str, address: dict[str, str], files: Sequence[Path]) -> dict[str, Any]:
    """Returns the server's reply. Raises UploadError, OSError or HttpError.

    The body is written to a temporary file first: a corpus may be larger than what fits into memory as JSON."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with ExitStack() as opened:
        body = opened.enter_context(tempfile.TemporaryFile())
        console = Console(stderr=True)
        progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        opened.enter_context(progress)
        _write_body(body, address, _documents(files, progress))
        length = body.tell()
        body.seek(0)
        watched = progress.wrap_file(body, length, description="sent; then the server loads it")
        return call(url, watched, length)


def _documents(files: Sequence[Path], progress: Progress) -> Iterator[Document]:
    for path in files:
        with path.open("rb") as file:
            watched = progress.wrap_file(file, path.stat().st_size, description=f"read {path.name}")
            try:
                yield from read_file(path.name, watched, MAX_TOKENS)
            except IngestError as error:
                raise UploadError(f"{path}: {error}") from None


def _write_body(body: IO[bytes], address: dict[str, str], documents: Iterator[Document]) -> None:
    kind = ""
    for document in documents:
        field, value = _field(document)
        if kind == "":
            kind = field
            body.write(json.dumps(address).removesuffix("}").encode() + f', "{field}": ['.encode())
        elif field == kind:
            body.write(b", ")
        else:
            raise UploadError(f"{document.place}: the files hold both text and token ids; a corpus is one of them")
        body.write(json.dumps(value).encode())
    if kind == "":
        raise UploadError("the files hold no document")
    body.write(b"]}")


def _field(document: Document) -> tuple[str, object]:
    """Field of the body that the document belongs to, and its value there."""
    if document.token_ids is None:
        return "documents", document.text
    ids = document.token_ids
    return "token_chunks", ids if isinstance(ids, list) else ids.tolist()
