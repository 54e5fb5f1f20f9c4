"""From a block's hidden states to drafted tokens: the Markov head walks the block, row by row greedy or sampled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from draftd.blocks.drafter import BlockDrafter


@dataclass(frozen=True, slots=True)
class DraftedBlocks:
    """A block for each row of a batch."""

    tokens: Tensor  # int64[rows, block size], the target's ids
    probabilities: Tensor  # float32[rows, block size, draft vocabulary]: what each was drawn from; greedy: all on one
    survival: Tensor | None  # float32[rows, block size]: it and all before it are accepted; without a head None


def draft(
    drafter: BlockDrafter,
    texts: Sequence[Sequence[int]],
    temperature: NDArray[np.float32],
    chance: NDArray[np.float32],
) -> DraftedBlocks:
    """A block behind each text, in one forward pass over the batch; at least one text, none of them empty.

    `temperature`: float32[rows], `chance`: float32[rows, block size], both as `walk` takes them: rows that are greedy
    and rows that are sampled may be in one batch."""
    context, begin = drafter.contexts(texts)
    last = torch.full((len(texts), 1), drafter.config.context_size - 1)
    with torch.inference_mode():
        hidden = drafter(context, begin, last)[:, 0]
        return walk(drafter, hidden, context[:, -1], torch.from_numpy(temperature), torch.from_numpy(chance))


def walk(drafter: BlockDrafter, hidden: Tensor, anchor: Tensor, temperature: Tensor, chance: Tensor) -> DraftedBlocks:
    """Chooses the tokens of a block one after the other.

    `hidden`: float32[rows, block size, hidden size]; `anchor`: int64[rows], own id of the text's last token;
    `temperature`: float32[rows], 0 is greedy; `chance`: float32[rows, block size] in [0, 1), by which the tokens of
    sampled rows are drawn: where it falls among the probabilities summed up in order of ids (inversion)."""
    sampled = temperature > 0
    divisor = torch.where(sampled, temperature, 1.0)[:, None]
    previous, state = anchor, drafter.markov_head.first_state(hidden[:, 0])
    parallel = drafter.logits(hidden)
    chosen, drawn_from, log_probability = [], [], []
    for place in range(hidden.shape[1]):
        bias, state = drafter.markov_head.step(previous, hidden[:, place], state)
        logits = parallel[:, place] + bias
        likeliest = logits.argmax(-1)
        probabilities = torch.where(
            sampled[:, None],
            torch.softmax(logits / divisor, -1),
            torch.nn.functional.one_hot(likeliest, logits.shape[-1]).to(logits.dtype),
        )
        previous = torch.where(sampled, _draw(probabilities, chance[:, place]), likeliest)
        chosen.append(previous)
        drawn_from.append(probabilities)
        log_probability.append(logits.log_softmax(-1).gather(-1, previous[:, None])[:, 0])
    survival = None
    if drafter.confidence_head is not None:
        accepted = torch.sigmoid(drafter.confidence_logits(hidden, torch.stack(log_probability, 1)))
        survival = accepted.cumprod(1)
    return DraftedBlocks(drafter.vocabulary[torch.stack(chosen, 1)], torch.stack(drawn_from, 1), survival)


def _draw(probabilities: Tensor, chance: Tensor) -> Tensor:
    """int64[rows]. In float64: thousands of small float32 would not sum to 1."""
    summed = probabilities.double().cumsum(-1)
    threshold = chance.double()[:, None] * summed[:, -1:]
    return torch.searchsorted(summed, threshold, right=True)[:, 0].clamp(max=summed.shape[-1] - 1)
