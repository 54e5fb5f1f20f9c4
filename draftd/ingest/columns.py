"""Documents as packed columns in a folder: little-endian rows, appended as they come, mapped by who reads them.

token_ids      i32 of all documents
document_ends  i64, running: document i is [document_ends[i-1], document_ends[i]) of the token ids
labels         UTF-8 of the documents' ids; with label_ends, i64, running, in bytes; both empty: there are none
times          i64, unix seconds of each document; empty: not known
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from draftd.ingest.documents import Ids
from draftd.ingest.labels import checked_label
from draftd.ingest.problem import IngestError
from draftd.ingest.readers.arrays import in_runs, never_falls
from draftd.ingest.readers.limits import ReadLimits, too_many_tokens
from draftd.observe.words import counted

COLUMNS = {"token_ids": "<i4", "document_ends": "<i8", "labels": "u1", "label_ends": "<i8", "times": "<i8"}


class ColumnsWriter:
    """Appends to the columns in a folder. Bytes are not looked at: who reads them checks them."""

    def __init__(self, folder: Path) -> None:
        self._files = {name: (folder / name).open("wb") for name in COLUMNS}
        self._tokens = 0
        self._label_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def append_packed(self, **columns: bytes | memoryview) -> None:
        """Bytes of some columns, as they are in the folder: ends run on over all that was appended."""
        for name, content in columns.items():
            self._files[name].write(content)

    def append(
        self,
        token_ids: NDArray[np.int32],
        document_ends: NDArray[np.int64],
        labels: Sequence[str],
        times: NDArray[np.int64],
    ) -> None:
        """Documents whose `document_ends` count from the first of these `token_ids`."""
        encoded = [label.encode() for label in labels]
        label_ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        self.append_packed(
            token_ids=token_ids.astype("<i4", copy=False).data,
            document_ends=(document_ends + self._tokens).astype("<i8", copy=False).data,
            labels=b"".join(encoded),
            label_ends=(label_ends + self._label_bytes).astype("<i8", copy=False).data,
            times=times.astype("<i8", copy=False).data,
        )
        self._tokens += len(token_ids)
        self._label_bytes += int(label_ends[-1]) if encoded else 0


def read_columns(folder: Path, limits: ReadLimits) -> Iterator[Ids]:
    """What a `ColumnsWriter` left in the folder. Raises IngestError."""
    columns = {name: _mapped(folder / name, name) for name in COLUMNS}
    ids, ends, times = columns["token_ids"], columns["document_ends"], columns["times"]
    if len(ids) > limits.max_tokens:
        raise too_many_tokens("token_ids", limits.max_tokens)
    _check_ends("document_ends", ends, len(ids), "token_ids")
    if len(times) not in (0, len(ends)):
        raise IngestError(f"times: {len(times)} for {counted(len(ends), 'document')}")
    written = times.astype(np.int64, copy=False) if len(times) else None
    packed, label_ends = columns["labels"], columns["label_ends"]
    labelled = len(packed) > 0 or len(label_ends) > 0
    if labelled:
        if len(label_ends) != len(ends):
            raise IngestError(f"label_ends: {len(label_ends)} for {counted(len(ends), 'document')}")
        _check_ends("label_ends", label_ends, len(packed), "labels")
    first = 0
    for run in in_runs(Ids(ids, ends.astype(np.int64, copy=False), "document {}".format, times=written)):
        last = first + len(run.document_ends)
        yield replace(run, labels=_labels(packed, label_ends, first, last) if labelled else None)
        first = last


def _mapped(path: Path, name: str) -> NDArray[np.integer]:
    dtype = np.dtype(COLUMNS[name])
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise IngestError(f"{name}: {size} bytes are no whole number of {dtype.itemsize}-byte integers")
    return np.memmap(path, dtype, "r") if size else np.empty(0, dtype)


def _check_ends(name: str, ends: NDArray[np.integer], size: int, of: str) -> None:
    last = int(ends[-1]) if len(ends) else 0
    if last != size:
        raise IngestError(f"{name} should grow to {size}, the length of {of}; it ends at {last}")
    if len(ends) and (int(ends[0]) < 0 or not never_falls(ends)):
        raise IngestError(f"{name} should grow from 0 to {size}, the length of {of}; it falls on the way")


def _labels(packed: NDArray[np.integer], ends: NDArray[np.integer], first: int, last: int) -> list[str]:
    """Those of documents [first, last)."""
    start = base = int(ends[first - 1]) if first else 0
    content = packed[base : int(ends[last - 1])].tobytes()
    labels = []
    for document, end in enumerate(ends[first:last].tolist(), start=first):
        try:
            labels.append(checked_label(f"document {document}", content[start - base : end - base].decode()))
        except UnicodeDecodeError:
            raise IngestError(f"document {document}: its label is not UTF-8") from None
        start = end
    return labels
