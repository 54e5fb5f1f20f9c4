"""Windows of tapes on their way to the device: written on the host, copied on a stream of their own, put into slots by
indices that are on the device. The host waits for none of it.

A delivery has a fixed size, so that it can be broadcast to the ranks of a group as it is.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from draftd.kernels.keys import SEPARATOR
from draftd.kernels.texts import ARRIVAL_TOKENS, DeviceTexts

_ROW, _OPENING, _STARTS, _TOKENS = range(4)  # columns of an entry; its tokens begin with the last
NOBODY = SEPARATOR  # the row of an entry that is none
STAGES = 4  # deliveries that may be on their way


@dataclass(frozen=True, slots=True)
class Arrival:
    """Windows of one request that came together."""

    row: int
    opening: int  # of the row: nothing is done for a request that has left it
    windows: Sequence[NDArray[np.int32]]
    starts: bool = False  # what came before was taken away, and is forgotten


def empty_delivery(entries: int, device: torch.device) -> Tensor:
    """int32[entries, 3 + ARRIVAL_TOKENS]."""
    return torch.full((entries, _TOKENS + ARRIVAL_TOKENS), SEPARATOR, dtype=torch.int32, device=device)


def put_into_slots(texts: DeviceTexts, delivery: Tensor) -> None:
    """Adds what a delivery has to the tapes: an arrival for each row at most.

    The last row of the tapes is nobody's: entries that are none end there."""
    row = delivery[:, _ROW].long()
    is_meant = (row >= 0) & (delivery[:, _OPENING] == texts.openings[row])
    row = torch.where(is_meant, row, len(texts.openings) - 1)
    came_before = torch.where(delivery[:, _STARTS] > 0, 0, texts.arrivals[row])
    texts.tapes[row, came_before % texts.tapes.shape[1]] = delivery[:, _TOKENS:]
    texts.arrivals[row] = came_before + 1


class Mailbox:
    """Deliveries from the host to the device, in order. One thread may post while another takes."""

    def __init__(self, rows: int, device: torch.device) -> None:
        """`rows`: of the batch, so of a delivery."""
        self._rows = rows
        self._free = deque(_Stage(rows, device) for _ in range(STAGES))
        self._posted: deque[_Stage] = deque()

    def post(self, arrivals: Sequence[Arrival]) -> bool:
        """False, and nothing is done, while all stages are on their way: the caller may try again after the next step.

        Raises ValueError for a row that is not there, or is there twice, and what NumPy raises for windows that are no
        row of int32; then nothing is done, either."""
        rows = [arrival.row for arrival in arrivals]
        if len(set(rows)) < len(rows) or not all(0 <= row < self._rows for row in rows):
            raise ValueError(f"arrivals for rows {rows}: each once, from 0 to {self._rows - 1}")
        if not self._free:
            return False
        stage = self._free.popleft()
        goes_to = self._free  # whatever happens: there are only so many stages
        try:
            if not stage.is_ready():
                return False
            stage.load(arrivals)
            goes_to = self._posted
            return True
        finally:
            goes_to.append(stage)

    @contextmanager
    def taken(self) -> Iterator[Tensor | None]:
        """The oldest delivery that was posted, for work of the current stream inside the block; None: there is none."""
        if not self._posted:
            yield None
            return
        stage = self._posted.popleft()
        try:
            with stage.used():
                yield stage.on_device
        finally:
            self._free.append(stage)


class _Stage:
    """A delivery in pinned memory and the same on the device. Without CUDA both are the host's."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.on_device = empty_delivery(rows, device)
        self._on_host = empty_delivery(rows, torch.device("cpu"))
        self._cuda: _Copying | None = None
        if device.type == "cuda":
            self._on_host = self._on_host.pin_memory()
            self._cuda = _Copying(torch.cuda.Stream(device), torch.cuda.Event(), torch.cuda.Event())
            # What fills `on_device` above has to be over before the first copy, too.
            self._cuda.used.record(torch.cuda.current_stream(device))

    def is_ready(self) -> bool:
        """Whether the last copy has read the host's part."""
        return self._cuda is None or bool(self._cuda.copied.query())

    def load(self, arrivals: Sequence[Arrival]) -> None:
        entries = self._on_host.numpy()
        entries[:] = NOBODY
        for entry, arrival in zip(entries, arrivals, strict=False):
            joined = _joined(arrival.windows)
            entry[:_TOKENS] = arrival.row, arrival.opening, arrival.starts
            entry[_TOKENS : _TOKENS + len(joined)] = joined
        if self._cuda is None:
            self.on_device.copy_(self._on_host)
            return
        with torch.cuda.stream(self._cuda.stream):
            self._cuda.stream.wait_event(self._cuda.used)
            self.on_device.copy_(self._on_host, non_blocking=True)
            self._cuda.copied.record(self._cuda.stream)

    @contextmanager
    def used(self) -> Iterator[None]:
        """The current stream waits for the copy before the block's work, the next copy for the block's work."""
        if self._cuda is None:
            yield
            return
        stream = torch.cuda.current_stream(self.on_device.device)
        stream.wait_event(self._cuda.copied)
        try:
            yield
        finally:  # a block that failed may have queued some of its work
            self._cuda.used.record(stream)


@dataclass(frozen=True, slots=True)
class _Copying:
    stream: Any
    copied: Any  # events
    used: Any


def _joined(windows: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """A separator before each window; what has no room is missing at the front, where it is preferred least."""
    separator = np.array([SEPARATOR], np.int32)
    joined = np.concatenate([part for window in windows for part in (separator, window)] or [separator])
    joined = joined[-ARRIVAL_TOKENS:]
    joined[0] = SEPARATOR  # a slot begins with one: no match goes on into the slot before
    return joined
