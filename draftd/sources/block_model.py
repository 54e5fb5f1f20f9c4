"""A block drafter as a draft source: a chain out of one forward pass, from the end of the request's text alone.

Needs the extra models, and a checkpoint that was trained for it: docs/block-drafting.md.
"""

from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from draftd.blocks.checkpoint import load_checkpoint
from draftd.blocks.walk import draft
from draftd.sources.source import Batch, Lane, Nature, Need, Outcome, Proposals, Shape, begins


def _nature(*, states_survival: bool) -> Nature:
    return Nature(
        needs=frozenset({Need.TOKENS}),
        shape=Shape.CHAIN,
        states_survival=states_survival,
        lane=Lane.THREAD,
        call_micros=15_000.0,  # of the reference checkpoint on one core
        row_micros=7_000.0,
    )


class BlockModel:
    """Chains with the survival that the checkpoint's confidence head states; each row has a budget of its own.

    Of a request its text is kept, for any part of it may be taken back; of the model no state."""

    nature = _nature(states_survival=True)

    def __init__(self, checkpoint: str | Path, *, temperature: float = 0.0, seed: int = 0) -> None:
        """`checkpoint`: a directory. At temperature 0 the likeliest tokens are drafted, above that tokens are drawn:
        for the same seed, request and text the same.

        Raises CheckpointError for a checkpoint that was not trained to draft blocks, and ValueError for one without a
        confidence head, or a temperature below 0."""
        if not temperature >= 0.0:
            raise ValueError(f"temperature is {temperature}; give 0 for the likeliest tokens, or more")
        self._drafter = load_checkpoint(Path(checkpoint))
        if self.nature.states_survival and not self._drafter.config.has_confidence_head:
            raise ValueError(f"{checkpoint} has no confidence head: it can be the source block_one_hot alone")
        self._temperature = temperature
        self._seed = seed
        self._texts: dict[int, array[int]] = {}

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        """Nothing is drafted behind an empty text, and never more than a block."""
        self._take(batch)
        texts = [self._texts[request] for request in batch.request.tolist()]
        size = self._drafter.config.block_size
        width = np.where([len(text) > 0 for text in texts], np.minimum(budget, size), 0)
        rows = np.flatnonzero(width)
        tokens, survival = np.array([], np.int32), np.array([], np.float32)
        if len(rows):
            chance = np.stack([self._chance(int(batch.request[row]), len(texts[row])) for row in rows])
            temperature = np.full(len(rows), self._temperature, np.float32)
            blocks = draft(self._drafter, [texts[row] for row in rows], temperature, chance)
            wanted = np.arange(size) < width[rows, None]
            tokens = blocks.tokens.numpy()[wanted].astype(np.int32)
            if blocks.survival is not None:
                survival = blocks.survival.numpy()[wanted]
        node_end = np.cumsum(width, dtype=np.uint32)
        return Proposals(node_end, tokens, survival=survival if self.nature.states_survival else None)

    def observe(self, outcome: Outcome) -> None:
        for request in outcome.ended.tolist():
            self._texts.pop(request, None)

    def close(self) -> None:
        self._texts.clear()
        del self._drafter

    def memory(self) -> int:
        """Bytes of weights and texts."""
        weights = sum(int(weight.nbytes) for weight in self._drafter.state_dict().values())
        return weights + sum(text.itemsize * len(text) for text in self._texts.values())

    def _take(self, batch: Batch) -> None:
        parts = zip(begins(batch.token_end).tolist(), batch.token_end.tolist(), strict=True)
        for request, start, (first, end) in zip(batch.request.tolist(), batch.start.tolist(), parts, strict=True):
            text = self._texts.setdefault(request, array("i"))
            del text[start:]
            text.frombytes(batch.tokens[first:end].tobytes())

    def _chance(self, request: int, length: int) -> NDArray[np.float32]:
        """By which a row's tokens are drawn, float32[block size]: whatever else is in the batch."""
        numbers = np.random.Philox(key=self._seed, counter=[0, 0, request, length])
        return np.random.Generator(numbers).random(self._drafter.config.block_size, np.float32)


class OneHotBlockModel(BlockModel):
    """Chains of any checkpoint. Nothing says which of them are worth more nodes, so all rows have to have the same
    budget: `propose` raises ValueError for others."""

    nature = _nature(states_survival=False)

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        if len(np.unique(budget)) > 1:
            raise ValueError(
                f"rows have budgets from {budget.min()} to {budget.max()}: without a confidence head all need "
                "the same; the source block takes any, with a checkpoint that has one"
            )
        return super().propose(batch, budget)
