"""Drafts matched on the engine's device, in each request's own text and its tapes, with no wait for the host.

Needs the `gpu` extra. On a CUDA device one graph of Triton kernels is a step; elsewhere their twin in torch does the
same.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributed import ProcessGroup

from draftd.kernels import ngram_torch, ngram_triton
from draftd.kernels.delivery import NOBODY, Arrival, Mailbox, empty_delivery, put_into_slots
from draftd.kernels.texts import DeviceTexts, Drafts, Rule


class DeviceNgram:
    """The texts of a batch of requests, a row for each, and their drafts.

    All work is queued on the device's current stream, which has to be the same for all calls. Calls return before it is
    done, and read nothing back."""

    def __init__(
        self, rows: int, width: int, rule: Rule, device: torch.device, group: ProcessGroup | None = None
    ) -> None:
        """`rows`: requests at a time; `width`: the most tokens of one; `group`: ranks that have to draft the same, as
        of a model that is split over devices. They make the same calls, and get what was posted at the first of them.

        Raises ValueError for a width that is too large."""
        self.texts = DeviceTexts.empty(rows, width, device)
        self._rule = rule
        self._rows = torch.arange(rows, device=device)
        self._drafts = Drafts.empty(rows, rule, device)
        self._mailbox = Mailbox(rows, device)
        self._group = group
        self._shared = empty_delivery(rows, device)
        self._opened = 0
        self._graph = self._captured() if device.type == "cuda" else None

    def open(self, row: int, prompt: ArrayLike) -> int:
        """A request takes the row, with this text: int[n]. What was there is forgotten. Returns the number of this
        opening, which arrivals name.

        Raises ValueError for a text that is longer than a row, and for a row that is not there."""
        self._check_row(row)
        text = torch.from_numpy(np.array(prompt, np.int32))
        width = self.texts.tokens.shape[1]
        if len(text) > width:
            raise ValueError(f"a text of {len(text)} tokens: rows have room for {width}")
        if self._graph is not None:
            text = text.pin_memory()
        self.texts.tokens[row, : len(text)].copy_(text, non_blocking=True)
        self.texts.lengths[row].fill_(len(text))
        self.texts.arrivals[row].zero_()
        self._opened += 1
        self.texts.openings[row].fill_(self._opened)
        return self._opened

    def close(self, row: int) -> None:
        """Nothing is drafted for the row until it is opened again; what a step in flight emits for it goes nowhere.

        Raises ValueError for a row that is not there."""
        self._check_row(row)
        self.texts.lengths[row].zero_()
        self.texts.openings[row].zero_()

    def append(self, emitted: Tensor, counts: Tensor) -> None:
        """What a step emitted: the first `counts[row]` tokens of `emitted[row]`. int[rows, most] and int[rows], on the
        device. What is beyond a row's width is cut, and what is for closed rows. The count of a row that was opened
        after the step began has to be 0: its tokens are those of the request before.

        Raises ValueError for tensors that are transposed or have gaps."""
        if self._graph is None:
            ngram_torch.append(self.texts, emitted, counts)
        else:
            ngram_triton.append(self.texts, emitted, counts)

    def post(self, arrivals: list[Arrival]) -> bool:
        """Sends windows of text for the tapes of open rows, each row once; another thread may call this. Each `propose`
        takes what one call posted.

        False, and nothing is done, while four are on their way. Raises ValueError for rows that are not there, and what
        NumPy raises for windows that are no row of int32; then nothing is done, either."""
        return self._mailbox.post(arrivals)

    def propose(self) -> tuple[Tensor, Tensor]:
        """Drafts for all rows: int32[rows, most tokens], and how many tokens of each row count: int32[rows]. Both are
        on the device, and are written anew by the next call."""
        self._receive()
        if self._graph is None:
            ngram_torch.draft(self.texts, self._rows, self._rule, self._drafts)
        else:
            self._graph.replay()
        return self._drafts.tokens, self._drafts.counts

    def _check_row(self, row: int) -> None:
        """The texts have one row more, nobody's, and an index from the end would be another request's."""
        if not 0 <= row < len(self._rows):
            raise ValueError(f"row {row}: there are those from 0 to {len(self._rows) - 1}")

    def _receive(self) -> None:
        with self._mailbox.taken() as delivery:
            if self._group is not None:
                delivery = self._of_first_rank(delivery, self._group)
            if delivery is not None:
                put_into_slots(self.texts, delivery)

    def _of_first_rank(self, delivery: Tensor | None, group: ProcessGroup) -> Tensor:
        """The broadcast has a fixed size, and every rank takes part in every step, whatever came."""
        if delivery is None:
            self._shared.fill_(NOBODY)
        else:
            self._shared.copy_(delivery)
        torch.distributed.broadcast(self._shared, group=group, group_src=0)
        return self._shared

    def _captured(self) -> torch.cuda.CUDAGraph:
        """One step's launches. They are run before, which compiles them: that can't be captured."""
        launch = ngram_triton.Launch.on(self._rows.device)

        def step() -> None:
            ngram_triton.draft(self.texts, self._rows, self._rule, self._drafts, launch)

        step()
        graph = torch.cuda.CUDAGraph()
        # Of this thread alone: by default a call of any other, as an engine's allocation, ends it in an error.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
        return graph
