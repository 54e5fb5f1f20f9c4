"""A corpus as two columns: all token ids, and where each document ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from draftd.ingest.problem import IngestError

# Without a known vocabulary: what an int32 holds, less one value that indexes use as "none".
ANY_VOCABULARY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """`token_ids` int32[n]; `document_ends` int64[d], running: document i is [document_ends[i-1], document_ends[i])."""

    token_ids: NDArray[np.int32]
    document_ends: NDArray[np.int64]

    def save(self, directory: Path) -> None:
        np.save(directory / "token_ids.npy", self.token_ids)
        np.save(directory / "document_ends.npy", self.document_ends)

    @classmethod
    def saved_in(cls, directory: Path) -> "TokenColumns":
        """What `save` wrote; read page by page from the files, which must stay until the last use."""
        return cls(
            np.load(directory / "token_ids.npy", mmap_mode="r"),
            np.load(directory / "document_ends.npy", mmap_mode="r"),
        )


class ColumnsBuilder:
    """Collects documents. Refuses the first id outside [0, vocabulary_size) and the first token above the limit."""

    def __init__(self, max_tokens: int, vocabulary_size: int = ANY_VOCABULARY) -> None:
        self._max_tokens = max_tokens
        self._vocabulary_size = vocabulary_size
        self._documents: list[NDArray[np.int32]] = []
        self._tokens = 0

    def add(self, place: str, ids: Sequence[object] | NDArray[np.integer]) -> None:
        """One document; `place` says where it came from ("document 3", "line 9000")."""
        self._tokens += len(ids)
        if self._tokens > self._max_tokens:
            raise too_many_tokens(place, self._max_tokens)
        self._documents.append(self._checked(place, ids))

    def build(self) -> TokenColumns:
        if self._tokens == 0:
            raise IngestError("the corpus is empty: it holds no token")
        lengths = np.fromiter(map(len, self._documents), np.int64, len(self._documents))
        return TokenColumns(np.concatenate(self._documents), np.cumsum(lengths))

    def _checked(self, place: str, ids: Sequence[object] | NDArray[np.integer]) -> NDArray[np.int32]:
        if not isinstance(ids, np.ndarray):
            ids = _integers(place, ids)
        outside = np.flatnonzero((ids < 0) | (ids >= self._vocabulary_size))
        if outside.size:
            at = int(outside[0])
            raise IngestError(
                f"{place}, token {at}: id {int(ids[at])} is outside the vocabulary [0, {self._vocabulary_size})"
            )
        return ids.astype(np.int32)


def too_many_tokens(place: str, max_tokens: int) -> IngestError:
    """The error for a corpus above the limit, which `place` takes it over."""
    return IngestError(f"{place}: the corpus holds more than {max_tokens} tokens, the limit corpora.max_tokens")


def _integers(place: str, ids: Sequence[object]) -> NDArray[np.integer]:
    # bool is an int to Python and to numpy, but no token id.
    if set(map(type, ids)) <= {int}:
        try:
            return np.array(ids, dtype=np.int64)
        except OverflowError:
            pass
    for at, value in enumerate(ids):
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise IngestError(f"{place}, token {at}: {_short(value)} is no token id")
    raise AssertionError("unreachable: all are integers of 64 bits")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
