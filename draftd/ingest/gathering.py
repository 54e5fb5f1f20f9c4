"""Documents into the builder of a segment: each id checked, the limit kept."""

import time

import numpy as np

from draftd.ingest.documents import Ids
from draftd.ingest.problem import IngestError
from draftd.ingest.readers.limits import too_many_tokens
from draftd.ingest.reporting import Count
from draftd.native import SegmentBuilder

# Without a known vocabulary: what an int32 holds, less one value that indexes use as "none".
ANY_VOCABULARY = 2**31 - 1


class Gatherer:
    """Refuses the first id outside [0, vocabulary_size) and the first token above the limit."""

    def __init__(
        self, builder: SegmentBuilder, count: Count, max_tokens: int, vocabulary_size: int = ANY_VOCABULARY
    ) -> None:
        self._builder = builder
        self._count = count
        self._max_tokens = max_tokens
        self._vocabulary_size = vocabulary_size
        self._now = int(time.time())

    def add(self, documents: Ids) -> None:
        """Raises IngestError."""
        ids, ends = documents.token_ids, documents.document_ends
        if self._count.tokens + len(ids) > self._max_tokens:
            over = int(np.searchsorted(ends, self._max_tokens - self._count.tokens, "right"))
            raise too_many_tokens(documents.place(over), self._max_tokens)
        if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= self._vocabulary_size):
            raise self._outside(documents)
        times = documents.times if documents.times is not None else np.full(len(ends), self._now)
        labels = documents.labels if documents.labels is not None else [""] * len(ends)
        packed = np.require(ids, np.int32, ("C", "A")), np.require(ends, np.int64, ("C", "A"))
        self._builder.add(*packed, list(labels), times)
        self._count.documents = self._builder.documents
        self._count.tokens = self._builder.tokens
        self._count.label_bytes += sum(len(label.encode()) for label in documents.labels or ())

    def _outside(self, documents: Ids) -> IngestError:
        ids, ends = documents.token_ids, documents.document_ends
        at = int(np.flatnonzero((ids < 0) | (ids >= self._vocabulary_size))[0])
        document = int(np.searchsorted(ends, at, "right"))
        token = at - int(ends[document - 1] if document else 0)
        return IngestError(
            f"{documents.place(document)}, token {token}: id {int(ids[at])} is outside the vocabulary "
            f"[0, {self._vocabulary_size})"
        )
