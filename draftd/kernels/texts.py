"""What is matched on the device, how, and where the drafts go. docs/ngram-gpu.md states the rule."""

from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from draftd.kernels.keys import MOST_TOKENS

RING = 8  # arrivals of windows that a request keeps, as the client's tapes do
ARRIVAL_TOKENS = 320  # of an arrival: 4 windows of 64 tokens and a draft behind 16, a separator before each


@dataclass(frozen=True, slots=True)
class Rule:
    """How texts are matched and drafts are given.

    The longest match of `min_n` to `max_n` tokens wins; of equals one in the own text, and there, or in the windows,
    the `earliest` or the `latest`. Slots without a draft hold -1, or with `pad_with_last` the last token of the text,
    for engines that verify whatever stands there."""

    min_n: int
    max_n: int
    most_tokens: int  # of a draft
    prefer: Literal["earliest", "latest"] = "latest"
    pad_with_last: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for lengths that can't be meant."""
        if not 1 <= self.min_n <= self.max_n:
            raise ValueError(f"matches of {self.min_n} to {self.max_n} tokens: it has to be 1 <= min_n <= max_n")
        if self.most_tokens < 1:
            raise ValueError(f"drafts of {self.most_tokens} tokens: it has to be 1 at least")


@dataclass(frozen=True, slots=True)
class DeviceTexts:
    """The texts of requests, a row for each, and the windows of their tapes. All on one device.

    A window in `tapes` has a separator before it, and the rest of its arrival is filled with those. Arrival number *a*
    of a row lies in slot `a % ring`, so the oldest slot is the next to be written. Tapes have one row more than there
    are requests, the last: nobody's, where writes that are meant for none end."""

    tokens: Tensor  # int32[rows, width]
    lengths: Tensor  # int32[rows]: tokens of each row that count
    tapes: Tensor  # int32[rows + 1, ring, arrival tokens]
    arrivals: Tensor  # int32[rows + 1]: how many came; 0: no slot counts
    openings: Tensor  # int32[rows + 1]: which request has the row, by a number that no other has; 0: none has it

    @classmethod
    def empty(cls, rows: int, width: int, device: torch.device) -> Self:
        """Raises ValueError for a width that a key has no room for."""
        _check_width(width)
        return cls.over(
            torch.zeros((rows, width), dtype=torch.int32, device=device),
            torch.zeros(rows, dtype=torch.int32, device=device),
        )

    @classmethod
    def over(cls, tokens: Tensor, lengths: Tensor) -> Self:
        """The texts of an engine that keeps them itself, with empty tapes beside: nothing is copied. int32[rows, width]
        and int32[rows].

        Raises ValueError for tensors that the kernels would misread."""
        are_read_so = (
            tokens.dim() == 2
            and lengths.shape == tokens.shape[:1]
            and (tokens.dtype, lengths.dtype) == (torch.int32, torch.int32)
            and (tokens.stride(1), lengths.stride(0)) == (1, 1)
            and tokens.device == lengths.device
        )
        if not are_read_so:
            raise ValueError(
                f"texts are {tokens.dtype}{list(tokens.shape)} with strides {tokens.stride()} on {tokens.device}, "
                f"their lengths {lengths.dtype}{list(lengths.shape)} with {lengths.stride()} on {lengths.device}: they "
                "have to be int32[rows, width] and int32[rows] on one device, tokens of a row one behind the other"
            )
        _check_width(tokens.shape[1])
        rows, device = len(tokens) + 1, tokens.device
        return cls(
            tokens=tokens,
            lengths=lengths,
            tapes=torch.zeros((rows, RING, ARRIVAL_TOKENS), dtype=torch.int32, device=device),
            arrivals=torch.zeros(rows, dtype=torch.int32, device=device),
            openings=torch.zeros(rows, dtype=torch.int32, device=device),
        )


def _check_width(width: int) -> None:
    if width > MOST_TOKENS:
        raise ValueError(f"{width} tokens: at most {MOST_TOKENS} fit into a key")


def check_emitted(emitted: Tensor, counts: Tensor) -> None:
    """Raises ValueError unless tokens of a row, and the counts, lie one behind the other. The kernel reads them so;
    copying others in each step would be a cost that nobody sees."""
    lie_together = emitted.shape[1] <= 1 or emitted.stride(1) == 1
    if not lie_together or not counts.is_contiguous():
        raise ValueError(
            f"what was emitted has strides {emitted.stride()}, its counts {counts.stride()}: the last of each has to "
            "be 1, as contiguous() makes it"
        )


@dataclass(frozen=True, slots=True)
class Drafts:
    """Buffers that a call fills, whatever they held. What is returned to callers are `tokens` and `counts`."""

    keys: Tensor  # int64[batch]: the best match of each row, see keys.py
    tokens: Tensor  # int32 or int64[batch, most_tokens]
    counts: Tensor  # int32[batch]: tokens of each row that are a draft

    @classmethod
    def empty(cls, batch: int, rule: Rule, device: torch.device, dtype: torch.dtype = torch.int32) -> Self:
        return cls(
            keys=torch.empty(batch, dtype=torch.int64, device=device),
            tokens=torch.empty((batch, rule.most_tokens), dtype=dtype, device=device),
            counts=torch.empty(batch, dtype=torch.int32, device=device),
        )
