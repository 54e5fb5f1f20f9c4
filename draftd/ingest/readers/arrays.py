"""Arrays of token ids in numpy's files: mapped, not parsed."""

import mmap
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from draftd.ingest.documents import RUN_TOKENS, Ids, Piece
from draftd.ingest.problem import IngestError
from draftd.ingest.readers.limits import ReadLimits, too_many_tokens
from draftd.ingest.readers.plain import plain_file


def read_npy(file: IO[bytes], limits: ReadLimits) -> Iterator[Piece]:
    """The token ids of one document. Raises IngestError."""
    ids = _array("the array", file, limits)
    yield Ids(ids, np.array([len(ids)], np.int64), lambda _: "the array")


def read_npz(file: IO[bytes], limits: ReadLimits) -> Iterator[Piece]:
    """`token_ids` of all documents and `doc_offsets`, one more than there are documents, from 0 to the end."""
    try:
        with plain_file(file, limits.unpacked_bytes) as plain, zipfile.ZipFile(plain) as archive:
            ids = _member(archive, "token_ids", limits)
            offsets = _member(archive, "doc_offsets", limits).astype(np.int64, copy=False)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise IngestError(f"not an .npz file: {error}") from None
    if not offsets.size or offsets[0] != 0 or offsets[-1] != ids.size or not never_falls(offsets):
        raise IngestError(f"doc_offsets should grow from 0 to {ids.size}, the number of token_ids")
    yield from in_runs(Ids(ids, offsets[1:], "document {}".format))


def in_runs(documents: Ids) -> Iterator[Ids]:
    """The same, without labels, in runs of whole documents, so that nobody has to copy all of it at once.

    Documents without a token cost something too: a run has at most RUN_TOKENS of them."""
    ends = documents.document_ends
    first = start = 0
    while first < len(ends):
        last = int(np.searchsorted(ends[first : first + RUN_TOKENS], start + RUN_TOKENS, "right"))
        last = first + max(1, last)
        end = int(ends[last - 1])
        yield Ids(
            documents.token_ids[start:end],
            ends[first:last] - start,
            _counted_from(first, documents.place),
            times=documents.times[first:last] if documents.times is not None else None,
        )
        first, start = last, end


def never_falls(ends: NDArray[np.integer]) -> bool:
    """Looked at in parts, for there may be many."""
    parts = (ends[start : start + RUN_TOKENS + 1] for start in range(0, len(ends), RUN_TOKENS))
    return all(bool(np.all(part[1:] >= part[:-1])) for part in parts)


def _counted_from(first: int, place: Callable[[int], str]) -> Callable[[int], str]:
    return lambda document: place(first + document)


def _member(archive: zipfile.ZipFile, name: str, limits: ReadLimits) -> NDArray[np.integer]:
    try:
        with archive.open(f"{name}.npy") as member:
            return _array(name, member, limits)
    except KeyError:
        raise IngestError(f"the .npz file holds no array {name}; it needs token_ids and doc_offsets") from None
    except RuntimeError as error:  # it is encrypted
        raise IngestError(f"not an .npz file: {error}") from None


def _array(place: str, file: IO[bytes], limits: ReadLimits) -> NDArray[np.integer]:
    try:
        version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file)  # type: ignore[no-untyped-call]
    except (ValueError, KeyError, MemoryError, RecursionError) as error:
        raise IngestError(f"{place}: not a numpy array: {str(error).partition(chr(10))[0]}") from None
    if len(shape) != 1 or dtype.kind not in "iu":
        raise IngestError(f"{place}: should be one row of integers, is {dtype} of shape {shape}")
    if shape[0] > limits.max_tokens + 1:  # one more: doc_offsets of as many documents as tokens
        raise too_many_tokens(place, limits.max_tokens)
    return _mapped(place, file, shape[0], dtype)


def _mapped(place: str, file: IO[bytes], count: int, dtype: np.dtype[np.integer]) -> NDArray[np.integer]:
    """`count` numbers from where the file is, in pages that the kernel reads when they are needed."""
    size = count * dtype.itemsize
    with plain_file(file, size) as plain:
        start = plain.tell()
        found = plain.seek(0, os.SEEK_END) - start
        if found < size:
            raise IngestError(f"{place}: cut off: {count} integers announced, {found // dtype.itemsize} found")
        if count == 0:
            return np.empty(0, dtype)
        pages = mmap.mmap(plain.fileno(), start + size, access=mmap.ACCESS_READ)
    return np.frombuffer(pages, dtype, count, start)
