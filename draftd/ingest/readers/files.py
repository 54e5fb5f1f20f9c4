"""Which reader a file needs: the ending of its name says so."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from draftd.ingest.documents import Piece
from draftd.ingest.problem import IngestError
from draftd.ingest.readers.arrays import read_npy, read_npz
from draftd.ingest.readers.compression import unpacked
from draftd.ingest.readers.jsonl import read_jsonl
from draftd.ingest.readers.limits import ReadLimits
from draftd.ingest.readers.parquet import read_parquet
from draftd.ingest.readers.position import Position
from draftd.ingest.readers.texts import read_text, text_files
from draftd.wire import LONGEST_LABEL

_READERS: dict[str, Callable[[IO[bytes], ReadLimits], Iterator[Piece]]] = {
    ".jsonl": read_jsonl,
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".npy": read_npy,
}
TEXT_ENDINGS = (".txt", ".md")
ENDINGS = f"the ending says what a file holds: {', '.join((*_READERS, *TEXT_ENDINGS))}, each also with .gz or .zst"


def read_file(name: str, file: IO[bytes], limits: ReadLimits, label: str) -> Iterator[Piece]:
    """Documents of an open file, read as they are asked for; the ending of `name` says what it holds.

    `label`: the id of a text, which can't hold one. Raises IngestError, which names the place in the file."""
    inner, stream = unpacked(name, file, limits)
    ending = Path(inner).suffix.lower()
    if ending in TEXT_ENDINGS:
        return iter((read_text("the file", stream, label),))
    if ending not in _READERS:
        raise IngestError(ENDINGS)
    return _READERS[ending](stream, limits)


def read_path(path: Path, limits: ReadLimits, position: Position) -> Iterator[Piece]:
    """Documents of a file, or of all texts below a folder. Raises IngestError, which names the place below `path`."""
    if path.is_dir():
        yield from _read_folder(path, position)
    else:
        yield from read_upload(path, path.name, limits, position, label=path.name)


def read_upload(path: Path, name: str, limits: ReadLimits, position: Position, label: str = "") -> Iterator[Piece]:
    """Documents of a file as if it were called `name`; a text's id is `label`. Raises IngestError."""
    with _failing_at(""), path.open("rb") as file:
        position.expect(os.fstat(file.fileno()).st_size)
        position.watch(file)
        yield from read_file(name, file, limits, label)


def _read_folder(folder: Path, position: Position) -> Iterator[Piece]:
    paths = text_files(folder)
    for path in paths:
        with _failing_at(f"{path.relative_to(folder).as_posix()}: "):
            position.expect(path.stat().st_size)
    for path in paths:
        label = _end_of(path.relative_to(folder).as_posix())
        with _failing_at(f"{label}: "), path.open("rb") as file:
            position.watch(file)
            yield read_text(label, file, label)


def _end_of(path: str) -> str:
    """As much of it as an id may have; the name of a file is never too long for one."""
    while len(os.fsencode(path)) > LONGEST_LABEL and "/" in path:
        path = path.partition("/")[2]
    return path


@contextmanager
def _failing_at(place: str) -> Iterator[None]:
    """An error of the operating system is one of the file at that place."""
    try:
        yield
    except OSError as error:
        raise IngestError(f"{place}{(error.strerror or str(error)).lower()}") from None
