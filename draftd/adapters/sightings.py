"""What a step has left of its requests' texts on the device, on its way to the host, which waits for none of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

END_TOKENS = 64  # of each text that are copied with every step: so many may be emitted while nothing is told


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A request of a step."""

    request_id: str
    row: int
    opening: int  # of the row, see DeviceMatcher
    prompt_length: int  # tokens
    most_new: int  # tokens of output
    known_length: int | None = (
        None  # tokens that were there before the step, where the request is told for the first time
    )


@dataclass(frozen=True, slots=True)
class Sighting:
    """A step. Its columns may be read once `wait` has returned."""

    rows: Sequence[SeenRow]
    open_ids: frozenset[str]  # of all requests that the engine has, also outside of the step
    _on_host: list[Tensor]  # lengths, ends, and the whole texts of those that are told for the first time
    _on_device: list[Tensor]  # kept until they are copied
    _copied: Any = None  # event; None: they are the host's own

    def wait(self) -> None:
        if self._copied is not None:
            self._copied.synchronize()

    @property
    def lengths(self) -> list[int]:
        """Of each row's text, with what the step emitted."""
        lengths: list[int] = self._on_host[0].tolist()
        return lengths

    @property
    def ends(self) -> NDArray[np.int32]:
        """int32[rows, END_TOKENS]: the last tokens of each text; in front of shorter texts, anything."""
        ends: NDArray[np.int32] = self._on_host[1].numpy()
        return ends

    @property
    def first_texts(self) -> list[NDArray[np.int32]]:
        """int32[known length] of each row that has one, in their order."""
        return [text.numpy() for text in self._on_host[2:]]


class TextReader:
    """Copies from the texts of a device. They may change as soon as a call has returned."""

    def __init__(self, tokens: Tensor, lengths: Tensor) -> None:
        """int32[rows, width] and int32[rows]."""
        self._tokens = tokens
        self._lengths = lengths
        self._back = torch.arange(-END_TOKENS, 0, device=tokens.device)
        self._stream = torch.cuda.Stream(tokens.device) if tokens.device.type == "cuda" else None

    def sighting(self, rows: Sequence[SeenRow], index: Tensor, open_ids: frozenset[str]) -> Sighting:
        """`index`: int64[rows] on the device, the same rows."""
        lengths = self._lengths[index]
        ends = self._tokens[index[:, None], (lengths[:, None] + self._back).clamp(min=0)]
        # Copied on the device first: the next steps write to the texts.
        texts = [self._tokens[row.row, : row.known_length].clone() for row in rows if row.known_length is not None]
        columns = [lengths, ends, *texts]
        if self._stream is None:
            return Sighting(rows, open_ids, columns, [])
        copied = torch.cuda.Event(blocking=True)
        self._stream.wait_stream(torch.cuda.current_stream(self._tokens.device))
        with torch.cuda.stream(self._stream):
            on_host = [column.to("cpu", non_blocking=True) for column in columns]  # into pinned memory that torch keeps
            copied.record(self._stream)
        return Sighting(rows, open_ids, on_host, columns, copied)
