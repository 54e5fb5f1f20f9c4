"""Streaming files into a corpus, with progress on standard error: what is sent, then what the server makes of it."""

import re
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.progress import Progress

from draftd.cli.failure import Interrupted
from draftd.cli.http import call
from draftd.cli.progress import progress_in_bytes
from draftd.ingest.documents import Ids, Text
from draftd.ingest.jobs import ENDS, State
from draftd.ingest.problem import IngestError
from draftd.ingest.readers import ENDINGS, TEXT_ENDINGS, Position, ReadLimits, read_path

# The server knows its own limit; here a file is only read.
LIMITS = ReadLimits(max_tokens=2**31 - 3)
POLL_SECONDS = 0.2

_CONTENT_TYPES = {
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".npz": "application/x-npz",
    ".npy": "application/x-npy",
}
_ENCODINGS = {".gz": "gzip", ".zst": "zstd"}


class UploadError(Exception):
    """The files can't be loaded. The text is one line."""


class Upload:
    """One upload to a server."""

    def __init__(self, server: str, corpus_id: str, query: dict[str, str]) -> None:
        self._server = server
        self._url = f"{server}/corpora/{urllib.parse.quote(corpus_id, safe='')}/documents?" + urllib.parse.urlencode(
            query | {"ack": "received"}
        )
        self._progress = progress_in_bytes()

    def run(self, files: Sequence[Path]) -> dict[str, Any]:
        """Returns the job when drafts use the documents. Raises UploadError, Interrupted, OSError or HttpError."""
        sent: list[tuple[int, Path]] = []
        with ExitStack() as opened:
            opened.enter_context(self._progress)
            try:
                if len(files) == 1 and _can_be_sent(files[0]):
                    job = self._send_file(files[0], opened)
                else:
                    # Lines that are made as they are sent: several files become visible together or not at all.
                    headers = {"Content-Type": _CONTENT_TYPES[".jsonl"]}
                    job = call(self._url, self._lines(files, sent), headers)["job"]
            except KeyboardInterrupt:
                raise Interrupted("interrupted while sending; only what is sent whole is added") from None
            job = self._ended(job)
        if job["state"] == State.CANCELLED:
            raise Interrupted("the load is cancelled; nothing is added")
        if job["state"] == State.FAILED:
            raise UploadError(_in_files(job["error"], sent))
        return job

    def _send_file(self, path: Path, opened: ExitStack) -> dict[str, Any]:
        file = opened.enter_context(path.open("rb"))
        size = path.stat().st_size
        watched = self._progress.wrap_file(file, size, description=f"send {path.name}")
        job: dict[str, Any] = call(self._url, watched, _headers(path) | {"Content-Length": str(size)})["job"]
        return job

    def _lines(self, files: Sequence[Path], sent: list[tuple[int, Path]]) -> Iterator[bytes]:
        """`sent` gets the number of the first line of each file, from 1 on."""
        position = Position()
        task = self._progress.add_task("send", total=None)
        number = 1
        for path in files:
            sent.append((number, path))
            for document, _ in _documents(path, position):
                yield msgspec.json.encode(document) + b"\n"
                number += 1
                self._progress.update(task, completed=position.bytes_read, total=position.bytes_total or None)

    def _ended(self, job: dict[str, Any]) -> dict[str, Any]:
        """The job after its end, which an interruption brings about."""
        url = f"{self._server}/jobs/{job['id']}"
        try:
            while job["state"] not in ENDS:
                time.sleep(POLL_SECONDS)
                job = call(url)["job"]
                _show(self._progress, job)
        except KeyboardInterrupt:
            job = call(url, method="DELETE")["job"]
        return job


def _show(progress: Progress, job: dict[str, Any]) -> None:
    """In one line, which is a new one for each state: rich lets no line go back to an end that is not known."""
    state = job["state"]
    figures = f"{state}: {job['tokens']:,} tokens"
    task = next((task.id for task in progress.tasks if task.fields.get("state") == state), None)
    if task is None:
        for other in progress.task_ids:
            progress.remove_task(other)
        task = progress.add_task(figures, total=None, state=state)
    if state == State.READING:
        figures += f", {job['tokens_per_second']:,}/s"
        progress.update(task, description=figures, completed=job["bytes_read"], total=job["bytes_total"])
    else:  # how long that takes is not known
        progress.update(task, description=figures)


def _can_be_sent(path: Path) -> bool:
    """As it is: other than a folder, and than a text, which would come without the name that it is known by."""
    return not path.is_dir() and _endings(path)[0] not in TEXT_ENDINGS


def _endings(path: Path) -> tuple[str, str]:
    """Of what the file holds, and of how that is packed."""
    packed = path.suffix.lower() if path.suffix.lower() in _ENCODINGS else ""
    return (Path(path.stem).suffix.lower() if packed else path.suffix.lower()), packed


def _headers(path: Path) -> dict[str, str]:
    """What the endings of the file's name say. Raises UploadError."""
    kind, packed = _endings(path)
    if kind not in _CONTENT_TYPES:
        raise UploadError(f"{path}: {ENDINGS}")
    return {"Content-Type": _CONTENT_TYPES[kind]} | ({"Content-Encoding": _ENCODINGS[packed]} if packed else {})


def _in_files(problem: str, sent: Sequence[tuple[int, Path]]) -> str:
    """The same, with the file and the place there instead of the line that was sent; as it is if none was."""
    line = re.match(r"line (\d+)", problem)
    if line is None or not sent:
        return problem
    number = int(line[1])
    first, path = max(start for start in sent if start[0] <= number)
    rest = problem[line.end() :]
    if not (path.is_file() or path.is_dir()):  # a pipe can't be read again
        return f"{path}: document {number - first}{rest}"
    # To remember the places of all documents would take more memory than the documents.
    _, place = next(islice(_documents(path, Position()), number - first, None))
    return f"{path}: {place}{rest}"


def _documents(path: Path, position: Position) -> Iterator[tuple[dict[str, Any], str]]:
    """Each document as a line of JSON has it, and where in the file it stands. Raises UploadError."""
    try:
        for piece in read_path(path, LIMITS, position):
            if isinstance(piece, Text):
                yield {"text": piece.text, "id": piece.label}, piece.place
            else:
                yield from _id_documents(piece)
    except IngestError as error:
        raise UploadError(f"{path}: {error}") from None


def _id_documents(ids: Ids) -> Iterator[tuple[dict[str, Any], str]]:
    labels = ids.labels or [""] * len(ids.document_ends)
    documents = np.split(ids.token_ids, ids.document_ends[:-1])
    for number, (document, label) in enumerate(zip(documents, labels, strict=True)):
        yield {"token_ids": document.tolist(), "id": label}, ids.place(number)
