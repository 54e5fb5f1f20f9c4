"""Drafts matched on the engine's device, in each request's own text and its tapes, with no wait for the host.

Needs the `gpu` extra.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributed import ProcessGroup

from draftd.kernels import ngram_torch, ngram_triton
from draftd.kernels.delivery import Arrival
from draftd.kernels.texts import DeviceTexts, Rule
from draftd.sources.device_matcher import DeviceMatcher


class DeviceNgram:
    """The texts of a batch of requests, a row for each, and their drafts.

    All work is queued on the device's current stream, which has to be the same for all calls. Calls return before it is
    done, and read nothing back."""

    def __init__(
        self, rows: int, width: int, rule: Rule, device: torch.device, group: ProcessGroup | None = None
    ) -> None:
        """`rows`: requests at a time; `width`: the most tokens of one; `group`: see DeviceMatcher.

        Raises ValueError for a width that is too large."""
        self.texts = DeviceTexts.empty(rows, width, device)
        self._matcher = DeviceMatcher(self.texts, rule, group=group)
        self._is_cuda = device.type == "cuda"

    def open(self, row: int, prompt: ArrayLike) -> int:
        """A request takes the row, with this text: int[n]. What was there is forgotten. Returns the number of this
        opening, which arrivals name.

        Raises ValueError for a text that is longer than a row, and for a row that is not there."""
        self._check_row(row)
        text = torch.from_numpy(np.array(prompt, np.int32))
        width = self.texts.tokens.shape[1]
        if len(text) > width:
            raise ValueError(f"a text of {len(text)} tokens: rows have room for {width}")
        if self._is_cuda:
            text = text.pin_memory()
        self.texts.tokens[row, : len(text)].copy_(text, non_blocking=True)
        self.texts.lengths[row].fill_(len(text))
        return self._matcher.open(row)

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
        if self._is_cuda:
            ngram_triton.append(self.texts, emitted, counts)
        else:
            ngram_torch.append(self.texts, emitted, counts)

    def post(self, arrivals: list[Arrival]) -> bool:
        """Sends windows of text for the tapes of open rows. See DeviceMatcher.post."""
        return self._matcher.post(arrivals)

    def propose(self) -> tuple[Tensor, Tensor]:
        """Drafts for all rows: int32[rows, most tokens], and how many tokens of each row count: int32[rows]. Both are
        on the device, and are written anew by the next call."""
        drafts = self._matcher.propose()
        return drafts.tokens, drafts.counts

    def _check_row(self, row: int) -> None:
        """An index from the end would be another request's."""
        rows = len(self.texts.lengths)
        if not 0 <= row < rows:
            raise ValueError(f"row {row}: there are those from 0 to {rows - 1}")
