"""Documents of shared histories, on their way between the engine and the disk."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftd.wire.namespace import Namespace


@dataclass(frozen=True, slots=True)
class HistoryDocuments:
    """Documents of one head of one history, oldest first, as columns.

    `group` is empty for the history that is the namespace's own; heads of a history are numbered by `generation`.
    Document i is `token_ids[document_ends[i-1]:document_ends[i]]`; labels are request ids, times unix seconds.
    """

    namespace: Namespace
    group: str
    generation: int
    token_ids: NDArray[np.int32]
    document_ends: NDArray[np.int64]
    labels: Sequence[str]
    times: NDArray[np.int64]

    def labelled(self, labels: Sequence[str]) -> NDArray[np.bool_]:
        """Which documents have one of these labels."""
        wanted = frozenset(labels)
        return np.fromiter((label in wanted for label in self.labels), np.bool_, len(self.labels))


@dataclass(frozen=True, slots=True)
class HistoryState:
    """What one history holds. The frozen head is the one that is being sealed, `generation` that of the live one."""

    namespace: Namespace
    group: str
    head_tokens: int
    head_bytes: int
    frozen_tokens: int
    generation: int
    segments: int
    oldest: int  # unix seconds, of the documents in its heads; 0: there are none
