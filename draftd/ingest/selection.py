"""Which documents a deletion means."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from draftd.ingest.problem import IngestError

# In unix seconds, in the year 2106: milliseconds, taken for seconds, would be a time after every document.
LATEST_TIME = 2**32 - 1


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

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the labels of its documents are asked to be."""
        return self.request_ids if self.history else self.document_ids

    def picks(self, times: NDArray[np.int64], labelled: Callable[[list[str]], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Which of the documents are meant; `labelled` tells which of them have one of the labels it is given.

        In a corpus a label is the document's id, in a history its request's."""
        meant = np.ones(len(times), np.bool_)
        if self.names is not None:
            meant &= labelled(list(self.names))
        if self.older_than is not None:
            meant &= times < self.older_than
        return meant


def parsed_selection(fields: dict[str, Any]) -> Selection:
    """What a caller asks for. Raises IngestError that names the field."""
    for name, value in fields.items():
        if value is None:  # of a list that somebody forgot to fill, it would pick everything
            raise IngestError(f"{name}: is null; leave it out, or give it a value")
    try:
        selection = Selection(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("valid tuple", "list")
        raise IngestError(f"{place}: {problem}" if place else problem) from None
    if selection.older_than is not None and not 0 <= selection.older_than <= LATEST_TIME:
        raise IngestError(f"older_than: {selection.older_than} should be a time in unix seconds")
    return selection
