"""Which reader a file needs: the ending of its name says so."""

import os
from collections.abc import Callable, Iterator
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
from draftd.ingest.readers.texts import read_text, read_text_below, text_files

_READERS: dict[str, Callable[[IO[bytes], ReadLimits], Iterator[Piece]]] = {
    ".jsonl": read_jsonl,
    ".parquet": read_parquet,
    ".txt": read_text,
    ".npz": read_npz,
    ".npy": read_npy,
}
ENDINGS = f"{', '.join(_READERS)}, each also with .gz or .zst"


def read_file(name: str, file: IO[bytes], limits: ReadLimits) -> Iterator[Piece]:
    """Documents of an open file, read as they are asked for; the ending of `name` says what it holds.

    Raises IngestError."""
    inner, stream = unpacked(name, file, limits)
    read = _READERS.get(Path(inner).suffix.lower())
    if read is None:
        raise IngestError(f"{name}: the ending says what a file holds: {ENDINGS}")
    return read(stream, limits)


def read_path(path: Path, limits: ReadLimits, position: Position) -> Iterator[Piece]:
    """Documents of a file, or of all texts below a folder. Raises IngestError."""
    try:
        if path.is_dir():
            yield from _read_folder(path, position)
        else:
            yield from read_upload(path, path.name, limits, position)
    except OSError as error:
        raise IngestError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def read_upload(path: Path, name: str, limits: ReadLimits, position: Position) -> Iterator[Piece]:
    """Documents of a file as if it were called `name`. Raises IngestError or OSError."""
    with path.open("rb") as file:
        position.expect(os.fstat(file.fileno()).st_size)
        position.watch(file)
        yield from read_file(name, file, limits)


def _read_folder(folder: Path, position: Position) -> Iterator[Piece]:
    paths = text_files(folder)
    position.expect(sum(path.stat().st_size for path in paths))
    for path in paths:
        with path.open("rb") as file:
            position.watch(file)
            yield read_text_below(folder, path, file)
