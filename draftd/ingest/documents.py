"""What readers yield: texts, and runs of documents that are token ids already."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Token ids are handed on in runs of about this many: few calls, and little beside the builder's own memory.
RUN_TOKENS = 1 << 20


@dataclass(frozen=True, slots=True)
class Text:
    """A document before tokenization. `place` says where it came from, for errors; `label` is its id, or ""."""

    place: str
    text: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Ids:
    """Documents as token ids: document i is [document_ends[i-1], document_ends[i]) of them.

    `labels`: the documents' ids; None: they have none. `place(i)` says where document i came from, for errors.
    `times`: unix seconds; None: now."""

    token_ids: NDArray[np.integer]
    document_ends: NDArray[np.int64]
    place: Callable[[int], str]
    labels: Sequence[str] | None = None
    times: NDArray[np.int64] | None = None


Piece = Text | Ids
