"""A batch of transformers' `generate` whose rows advance by different numbers of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from draftd.adapters.ragged_cache import RaggedCache

UNUSED_TOKEN = 0  # fills a row's draft up to the longest of its batch; nobody sees it


@dataclass(slots=True)
class RaggedRow:
    """One sequence. Room for the longest output is made at once."""

    ids: Tensor  # int64[1, longest]: a view of the batch's sequences, with the padding that the prompt came with
    length: int  # of ids, so far
    text: NDArray[np.int32]  # int32[longest]: the same without padding
    prompt_length: int  # of text
    padding: int
    running: bool = True

    @property
    def sequence(self) -> Tensor:
        """int64[1, n]: what `generate` has of this row."""
        return self.ids[:, : self.length]

    @property
    def committed(self) -> NDArray[np.int32]:
        """int32[n]: prompt and output."""
        return self.text[: self.length - self.padding]

    def append(self, token: int) -> None:
        self.ids[0, self.length] = token
        self.text[self.length - self.padding] = token
        self.length += 1


class RaggedBatch:
    """The sequences of a batch, and a model that has seen all of each but what is pending.

    `input_ids`, int64[rows, n], and `model_inputs` are what a decoding method gets from `generate`; a cache among them
    that holds the beginning of the text is gone on with. Raises ValueError for a cache that can't be used.
    """

    def __init__(
        self, model: PreTrainedModel, input_ids: Tensor, padding_id: int, longest: int, model_inputs: dict[str, Any]
    ) -> None:
        inputs = dict(model_inputs)
        cache = inputs.pop("past_key_values")
        mask, positions = inputs.pop("attention_mask", None), inputs.pop("position_ids", None)
        mask = torch.ones_like(input_ids) if mask is None else mask.to(torch.int64)
        cached = cache.get_seq_length()
        if cached >= input_ids.shape[1]:
            raise ValueError(
                f"past_key_values holds {cached} tokens, input_ids {input_ids.shape[1]}; give the whole text"
            )
        self._model, self._model_inputs = model, inputs
        self._takes_positions = positions is not None
        self._cache = RaggedCache(cache, mask[:, :cached])
        # What the model has not seen yet: the prompt, later each row's last token. int64[rows, n] each.
        self._pending, self._pending_mask = input_ids[:, cached:], mask[:, cached:]
        if positions is None:
            positions = mask.cumsum(dim=1) - 1
        self._positions = positions[:, cached:].expand(self._pending.shape)
        self._appended = self._pending_mask
        self._is_first = True
        self.sequences = input_ids.new_full((len(input_ids), longest), padding_id)
        self.sequences[:, : input_ids.shape[1]] = input_ids
        self.rows = [self._row(place, input_ids[place], mask[place].bool()) for place in range(len(input_ids))]

    @property
    def cache(self) -> Cache | None:
        """What `generate` returns: keys and values of all but the last token of each sequence.

        None where rows have ended at different places, and so lie elsewhere in the cache than in `sequences`.
        """
        (length, *others) = {row.length for row in self.rows}
        cache = self._cache.cache
        return None if others or cache.get_seq_length() != length - 1 else cache

    def forward(self, chains: Sequence[Sequence[int]]) -> Tensor:
        """One pass of the model over what is pending and a chain for each row.

        float[rows, longest chain + 1, vocabulary]: the logits behind what is pending and behind each drafted token.
        """
        longest = max(map(len, chains))
        unused = [longest - len(chain) for chain in chains]
        drafted = [[*chain, *[UNUSED_TOKEN] * count] for chain, count in zip(chains, unused, strict=True)]
        is_drafted = [[1] * len(chain) + [0] * count for chain, count in zip(chains, unused, strict=True)]
        self._appended = torch.cat([self._pending_mask, self._like_pending(is_drafted)], dim=1)
        inputs = self._model_inputs
        if self._takes_positions:
            after = torch.arange(1, longest + 1, device=self._positions.device)
            inputs = inputs | {"position_ids": torch.cat([self._positions, self._positions[:, -1:] + after], dim=1)}
        if "logits_to_keep" in inputs:
            inputs = inputs | {"logits_to_keep": longest + 1}
        prepared = self._model.prepare_inputs_for_generation(
            torch.cat([self._pending, self._like_pending(drafted)], dim=1),
            past_key_values=self._cache.cache,
            attention_mask=torch.cat([self._cache.mask, self._appended], dim=1),
            is_first_iteration=self._is_first,
            **inputs,
        )
        self._is_first = False
        logits: Tensor = self._model(**prepared, return_dict=True).logits
        return logits[:, -longest - 1 :]

    def advance(self, emitted: Sequence[int]) -> None:
        """Go on after a pass: each row has been appended so many tokens, all but the last of them drafted ones."""
        pending = self._pending.shape[1]
        self._cache.keep([pending + count - 1 if count else 0 for count in emitted], self._appended)
        self._positions = self._positions[:, -1:] + self._like_pending([[count] for count in emitted])
        self._pending = torch.cat([row.sequence[:, -1:] for row in self.rows])
        self._pending_mask = self._like_pending([[int(row.running)] for row in self.rows])

    def _row(self, place: int, ids: Tensor, is_text: Tensor) -> RaggedRow:
        prompt = ids[is_text].tolist()
        text = np.empty(self.sequences.shape[1], np.int32)
        text[: len(prompt)] = prompt
        return RaggedRow(self.sequences[place : place + 1], len(ids), text, len(prompt), len(ids) - len(prompt))

    def _like_pending(self, rows: list[list[int]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.int64, device=self._pending.device)
