"""Which documents a deletion means."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_validator


class Selection(BaseModel):
    """Documents of one corpus, or of a history: those that fit every field that is given; none given: all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: str = "default"
    model: str = "default"
    adapter: str = ""
    tokenizer: str | None = None  # not stated: any
    corpus_id: str | None = None
    history: bool = False
    document_ids: tuple[str, ...] | None = None  # of a corpus
    group: str | None = None  # of a history; not stated: all of its groups
    request_ids: tuple[str, ...] | None = None  # of a history
    older_than: int | None = None  # unix seconds

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.corpus_id is not None) == self.history:
            raise ValueError("give either corpus_id or history = true")
        if self.history and self.document_ids is not None:
            raise ValueError("document_ids are of a corpus; those of a history are request_ids")
        if not self.history and (self.group is not None or self.request_ids is not None):
            raise ValueError("group and request_ids are of a history; documents of a corpus have document_ids")
        return self

    def picks(self, labels: Sequence[str], times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the documents are meant; in a corpus a label is the document's id, in a history its request's."""
        meant = np.ones(len(times), np.bool_)
        names = self.request_ids if self.history else self.document_ids
        if names is not None:
            wanted = frozenset(names)
            meant &= np.fromiter((label in wanted for label in labels), np.bool_, len(times))
        if self.older_than is not None:
            meant &= times < self.older_than
        return meant
