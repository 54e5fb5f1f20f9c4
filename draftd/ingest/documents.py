"""Documents before tokenization, and how a file of each kind is read into them."""

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

import numpy as np
from numpy.typing import NDArray

from draftd.ingest.columns import too_many_tokens
from draftd.ingest.problem import IngestError

LONGEST_TEXT = 64 << 20  # bytes of one line or text file; one without an end must not fill the memory


@dataclass(frozen=True, slots=True)
class Document:
    """Either text or token ids. `place` says where it came from, for errors."""

    place: str
    text: str | None = None
    token_ids: list[object] | NDArray[np.integer] | None = None


def read_file(name: str, file: IO[bytes], max_tokens: int) -> Iterator[Document]:
    """Documents of an open file, read as they are asked for; the ending of `name` says what it holds.

    Token arrays that can't be within `max_tokens` are refused before they are read. Raises IngestError."""
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    if ending not in _READERS:
        raise IngestError(f"{name}: the ending says what a file holds: {', '.join(_READERS)}")
    return _READERS[ending](file, max_tokens)


def _read_jsonl(file: IO[bytes], _max_tokens: int) -> Iterator[Document]:
    """Per line a string, or an object with `text` or `token_ids`; other keys are left alone, blank lines skipped."""
    number = 0
    while line := file.readline(LONGEST_TEXT + 1):
        number += 1
        place = f"line {number}"
        if len(line) > LONGEST_TEXT:
            raise IngestError(f"{place}: longer than {LONGEST_TEXT} bytes; make several documents of it")
        if line.strip():
            yield _jsonl_document(place, line)


def _jsonl_document(place: str, line: bytes) -> Document:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise IngestError(f"{place}: not JSON: {error}") from None
    if isinstance(value, str):
        return Document(place, text=value)
    if isinstance(value, dict):
        text, ids = value.get("text"), value.get("token_ids")
        if isinstance(text, str) and ids is None:
            return Document(place, text=text)
        if isinstance(ids, list) and text is None:
            return Document(place, token_ids=ids)
    raise IngestError(f'{place}: should be a string, {{"text": string}} or {{"token_ids": [ids]}}')


def _read_text(file: IO[bytes], _max_tokens: int) -> Iterator[Document]:
    content = file.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise IngestError(
            f"the file is longer than {LONGEST_TEXT} bytes; make several documents of it in a .jsonl file"
        )
    try:
        yield Document("the file", text=content.decode())
    except UnicodeDecodeError as error:
        raise IngestError(f"the file is not UTF-8 at byte {error.start}") from None


def _read_npy(file: IO[bytes], max_tokens: int) -> Iterator[Document]:
    """The token ids of one document."""
    yield Document("the array", token_ids=_array("the array", file, max_tokens))


def _read_npz(file: IO[bytes], max_tokens: int) -> Iterator[Document]:
    """`token_ids` of all documents and `doc_offsets`, one more than there are documents, from 0 to the end."""
    try:
        with zipfile.ZipFile(file) as archive:
            ids = _member(archive, "token_ids", max_tokens)
            offsets = _member(archive, "doc_offsets", max_tokens).astype(np.int64)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise IngestError(f"not an .npz file: {error}") from None
    if not offsets.size or offsets[0] != 0 or offsets[-1] != ids.size or np.any(np.diff(offsets) < 0):
        raise IngestError(f"doc_offsets should grow from 0 to {ids.size}, the number of token_ids")
    for number, (start, end) in enumerate(pairwise(offsets.tolist())):
        yield Document(f"document {number}", token_ids=ids[start:end])


def _member(archive: zipfile.ZipFile, name: str, max_tokens: int) -> NDArray[np.integer]:
    try:
        with archive.open(f"{name}.npy") as member:
            return _array(name, member, max_tokens)
    except KeyError:
        raise IngestError(f"the .npz file holds no array {name}; it needs token_ids and doc_offsets") from None


def _array(place: str, file: IO[bytes], max_tokens: int) -> NDArray[np.integer]:
    try:
        version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file)  # type: ignore[no-untyped-call]
    except (ValueError, KeyError) as error:
        raise IngestError(f"{place}: not a numpy array: {error}") from None
    if len(shape) != 1 or dtype.kind not in "iu":
        raise IngestError(f"{place}: should be one row of integers, is {dtype} of shape {shape}")
    if shape[0] > max_tokens + 1:  # one more: doc_offsets of as many documents as tokens
        raise too_many_tokens(place, max_tokens)
    content = file.read(shape[0] * dtype.itemsize)
    if len(content) != shape[0] * dtype.itemsize:
        raise IngestError(f"{place}: cut off: {shape[0]} integers announced, {len(content) // dtype.itemsize} found")
    ids: NDArray[np.integer] = np.frombuffer(content, dtype)
    return ids


_READERS: dict[str, Callable[[IO[bytes], int], Iterator[Document]]] = {
    ".jsonl": _read_jsonl,
    ".txt": _read_text,
    ".npz": _read_npz,
    ".npy": _read_npy,
}
