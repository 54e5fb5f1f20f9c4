"""Keys and values of many texts in one memory, and forward passes over any of them side by side.

The memory is pages of one token, called slots (as in PagedAttention, Kwon et al., arXiv 2309.06180, where a page has
16): a text's tokens may lie anywhere, so rows of any length share it without gaps, and what a draft put there becomes
part of the text, or is given back, without a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from draftd.models.slots import NOBODY


@dataclass(frozen=True, slots=True)
class PassRow:
    """What a pass runs for one text: n tokens, which see m slots."""

    tokens: NDArray[np.int64]  # int64[n]
    positions: NDArray[np.int64]  # int64[n], in the text
    slots: NDArray[np.int64]  # int64[n]: where their keys and values go
    table: NDArray[np.int64]  # int64[m]: the slots of text and tokens
    sees: NDArray[np.bool_]  # bool[n, m]


class PagedModel:
    """A causal model of transformers with memory of its own, `slots` slots for each layer. Not thread-safe."""

    def __init__(self, model: Any, slots: int) -> None:
        self._model = model
        self._layers = [_PagedLayer(slots) for _ in range(model.config.get_text_config().num_hidden_layers)]
        self._cache = Cache(layers=self._layers)
        self.device: torch.device = model.device
        # All memory that there will be is made by a first pass, and what is slow but once is done.
        nobody = np.full(1, NOBODY)
        self.run([PassRow(nobody, nobody, nobody, nobody, np.ones((1, 1), np.bool_))], keep=1)

    def run(self, rows: Sequence[PassRow], keep: int) -> Tensor:
        """float32[rows, keep, vocabulary]: the logits behind the last `keep` tokens of each row. A row that has fewer
        stands at the end; what is before it means nothing."""
        width = max(len(row.tokens) for row in rows)
        seen = max(len(row.table) for row in rows)
        # Rows end at the right edge. What pads them goes to nobody's slot, and sees what it likes.
        tokens, positions, slots = (np.full((len(rows), width), fill, np.int64) for fill in (0, 0, NOBODY))
        table = np.full((len(rows), seen), NOBODY, np.int64)
        sees = np.zeros((len(rows), width, seen), np.bool_)
        for place, row in enumerate(rows):
            first = width - len(row.tokens)
            tokens[place, first:], positions[place, first:], slots[place, first:] = row.tokens, row.positions, row.slots
            table[place, : len(row.table)] = row.table
            sees[place, first:, : len(row.table)] = row.sees
        slots_there, table_there = self._on_device(slots), self._on_device(table)
        for layer in self._layers:
            layer.turn_to(slots_there, table_there)
        with torch.inference_mode():
            output = self._model(
                input_ids=self._on_device(tokens),
                position_ids=self._on_device(positions),
                attention_mask=self._mask(sees),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        logits: Tensor = output.logits.float()
        return logits

    def memory(self) -> int:
        """Bytes of weights, keys and values."""
        kept = (tensor for layer in self._layers for tensor in (layer.keys, layer.values))
        return sum(int(tensor.nbytes) for tensor in (*self._model.parameters(), *kept))

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def _mask(self, sees: NDArray[np.bool_]) -> Tensor:
        """[rows, 1, n, m], to be added to the scores: 0 where a slot is seen, and as good as minus infinity."""
        mask = torch.zeros(sees.shape, dtype=self._model.dtype, device=self.device)
        mask.masked_fill_(self._on_device(~sees), torch.finfo(self._model.dtype).min)
        return mask[:, None]


class _PagedLayer(CacheLayerMixin):  # type: ignore[misc]  # transformers is not there where this is checked
    """One layer's memory: [slots, heads, width of a head] keys, and as many values."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self._count = slots

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        # Zeros: what is masked counts 0 times, and 0 times an accidental infinity would be no number.
        self.keys = key_states.new_zeros((self._count, key_states.shape[1], key_states.shape[3]))
        self.values = value_states.new_zeros((self._count, value_states.shape[1], value_states.shape[3]))
        self.is_initialized = True

    def turn_to(self, slots: Tensor, table: Tensor) -> None:
        """For the next pass: int64[rows, n], where its tokens go, and int64[rows, m], what they see."""
        self._slots, self._table = slots, table

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys[self._slots] = key_states.transpose(1, 2)
        self.values[self._slots] = value_states.transpose(1, 2)
        return self.keys[self._table].transpose(1, 2), self.values[self._table].transpose(1, 2)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002  (masks are ours)
        return self._table.shape[1], 0

    def get_seq_length(self) -> int:
        return 0

    def get_max_length(self) -> int:
        return -1
