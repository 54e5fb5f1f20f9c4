"""Helpers: documents as files of every kind, packed in every way."""

import gzip
import io
import json
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow
from numpy.typing import ArrayLike
from pyarrow import parquet

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Documents = Sequence[Sequence[int]]

# Without the time, as tests are named after what is packed, and every worker has to find the same tests.
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".zst": zstd.compress,
}


def npy(array: ArrayLike) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: ArrayLike) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def table(**columns: object) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def _jsonl(documents: Documents) -> bytes:
    return "\n".join(json.dumps({"token_ids": list(document)}) for document in documents).encode()


def _npz(documents: Documents) -> bytes:
    ends = np.cumsum([0, *map(len, documents)])
    return npz(token_ids=np.array([token for document in documents for token in document], np.int64), doc_offsets=ends)


def _parquet(documents: Documents) -> bytes:
    ids = pyarrow.array([list(document) for document in documents], pyarrow.list_(pyarrow.int32()))
    return table(token_ids=ids)


# By the ending; the file has one document for each row or line.
WRITTEN: dict[str, Callable[[Documents], bytes]] = {".jsonl": _jsonl, ".npz": _npz, ".parquet": _parquet}
