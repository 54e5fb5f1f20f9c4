"""Segments for tests: of given documents, without a file that outlives the call."""

import tempfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from draftd import native


def sealed(
    documents: Sequence[Sequence[int]], labels: Sequence[str] = (), time: int | Sequence[int] = 0
) -> native.Segment:
    """One segment of the documents, of which at least one holds a token. Not labelled: all labels are empty."""
    builder = native.SegmentBuilder("")
    builder.add(
        np.array([token for document in documents for token in document], np.int32),
        np.array(list(accumulate(map(len, documents))), np.int64),
        list(labels) or [""] * len(documents),
        np.full(len(documents), time, np.int64),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segment"
        builder.write(str(path))
        return native.Segment.open(str(path))
