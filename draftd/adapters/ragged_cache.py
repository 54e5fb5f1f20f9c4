"""Keys and values of a batch whose rows advance by different numbers of tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer


class RaggedCache:
    """A transformers cache in which each row's text ends at the right edge, as with left padding.

    `mask`, int64[rows, slots], has 1 where a slot holds a token of its row: it is the attention mask of what is cached.
    """

    def __init__(self, cache: Cache, mask: Tensor) -> None:
        """Raises ValueError for a cache that can't take tokens back."""
        self.cache = cache
        self.mask = mask
        if not cache.is_croppable:
            raise ValueError(
                f"{type(cache).__name__} can't take rejected tokens back; use cache_implementation='dynamic'"
            )
        if len(mask) > 1 and any(type(layer) is not DynamicLayer for layer in cache.layers):
            kinds = ", ".join(sorted({type(layer).__name__ for layer in cache.layers}))
            raise ValueError(
                f"rows of this model's cache can't be moved apart ({kinds}); give generate one row at a time"
            )
        cache.activate_past_recording()

    def keep(self, kept: Sequence[int], appended: Tensor) -> None:
        """Of the slots that a forward pass appended, keep so many of each row, from the left.

        `appended`, int64[rows, new slots], is their part of the attention mask.
        """
        most = max(kept)
        counts = torch.tensor(kept, device=appended.device)[:, None]
        places = torch.arange(most, device=appended.device)[None]
        self.mask = torch.cat([self.mask, appended[:, :most] * (places < counts)], dim=1)
        self.cache.crop(most - appended.shape[1])
        if min(kept) < most:
            self._move_right(most - counts)

    def _move_right(self, slots: Tensor) -> None:
        """Each row by so many slots, int64[rows, 1], as are empty at its right end.

        Then what all rows have empty on the left is dropped.
        """
        width = self.mask.shape[1]
        source = (torch.arange(width, device=slots.device)[None] - slots) % width
        mask = self.mask.gather(1, source)
        first = int(mask.any(dim=0).int().argmax())
        self.mask, source = mask[:, first:], source[:, first:]
        for layer in self.cache.layers:
            index = source.to(layer.keys.device)[:, None, :, None]
            layer.keys = layer.keys.take_along_dim(index, dim=2)
            layer.values = layer.values.take_along_dim(index, dim=2)
