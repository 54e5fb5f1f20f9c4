"""Streaming files into a corpus, with progress on standard error: what is sent, then what the server makes of it."""

import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

from draftd.cli.http import call
from draftd.ingest.documents import Ids, Text
from draftd.ingest.problem import IngestError
from draftd.ingest.readers import ENDINGS, Position, ReadLimits, read_path

# The server knows its own limit; here a file is only read.
LIMITS = ReadLimits(max_tokens=2**31 - 3)
POLL_SECONDS = 0.2

_CONTENT_TYPES = {
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".txt": "text/plain",
    ".npz": "application/x-npz",
    ".npy": "application/x-npy",
}
_ENCODINGS = {".gz": "gzip", ".zst": "zstd"}


class UploadError(Exception):
    """The files can't be loaded. The text is one line."""


class Upload:
    """Progress of one upload. Entering the context shows it if standard error is a terminal."""

    def __init__(self, server: str, corpus_id: str, query: dict[str, str]) -> None:
        self._server = server
        self._url = f"{server}/corpora/{urllib.parse.quote(corpus_id, safe='')}/documents?" + urllib.parse.urlencode(
            query | {"ack": "received"}
        )
        console = Console(stderr=True)
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def run(self, files: Sequence[Path]) -> dict[str, Any]:
        """Returns the job when drafts use the documents. Raises UploadError, OSError or HttpError.

        When it is interrupted, the server is told to give up."""
        with ExitStack() as opened:
            opened.enter_context(self._progress)
            if len(files) == 1 and not files[0].is_dir():
                job = self._send_file(files[0], opened)
            else:
                # Lines that are made as they are sent: several files become visible together or not at all.
                job = call(self._url, self._lines(files), {"Content-Type": _CONTENT_TYPES[".jsonl"]})["job"]
            return self._followed(job)

    def _send_file(self, path: Path, opened: ExitStack) -> dict[str, Any]:
        file = opened.enter_context(path.open("rb"))
        size = path.stat().st_size
        watched = self._progress.wrap_file(file, size, description=f"send {path.name}")
        job: dict[str, Any] = call(self._url, watched, _headers(path) | {"Content-Length": str(size)})["job"]
        return job

    def _lines(self, files: Sequence[Path]) -> Iterator[bytes]:
        position = Position()
        task = self._progress.add_task("send", total=None)
        for line in map(_line, _documents(files, position)):
            yield line
            self._progress.update(task, completed=position.bytes_read, total=position.bytes_total or None)

    def _followed(self, job: dict[str, Any]) -> dict[str, Any]:
        url = f"{self._server}/jobs/{job['id']}"
        task = self._progress.add_task("load", total=None)
        try:
            while job["state"] not in ("done", "failed", "cancelled"):
                time.sleep(POLL_SECONDS)
                job = call(url)["job"]
                _show(self._progress, task, job)
        except KeyboardInterrupt:
            call(url, method="DELETE")
            raise
        if job["state"] != "done":
            raise UploadError(job["error"] or "the load was cancelled")
        return job


def _show(progress: Progress, task: TaskID, job: dict[str, Any]) -> None:
    description = f"{job['state']}: {job['tokens']:,} tokens, {job['tokens_per_second']:,}/s"
    progress.update(task, description=description, completed=job["bytes_read"], total=job["bytes_total"])


def _headers(path: Path) -> dict[str, str]:
    """What the endings of the file's name say. Raises UploadError."""
    encoding = _ENCODINGS.get(path.suffix.lower())
    kind = Path(path.stem).suffix if encoding else path.suffix
    content_type = _CONTENT_TYPES.get(kind.lower())
    if content_type is None:
        raise UploadError(f"{path}: the ending says what a file holds: {ENDINGS}")
    return {"Content-Type": content_type} | ({"Content-Encoding": encoding} if encoding else {})


def _documents(paths: Sequence[Path], position: Position) -> Iterator[dict[str, Any]]:
    """Each document as a line of JSON has it."""
    for path in paths:
        try:
            for piece in read_path(path, LIMITS, position):
                if isinstance(piece, Text):
                    yield {"text": piece.text, "id": piece.label}
                else:
                    yield from _id_documents(piece)
        except IngestError as error:
            raise UploadError(f"{path}: {error}") from None


def _id_documents(ids: Ids) -> Iterator[dict[str, Any]]:
    labels = ids.labels or [""] * len(ids.document_ends)
    for document, label in zip(np.split(ids.token_ids, ids.document_ends[:-1]), labels, strict=True):
        yield {"token_ids": document.tolist(), "id": label}


def _line(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document) + b"\n"
