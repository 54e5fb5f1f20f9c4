"""Markov heads: what the token before adds to a position's logits, as a block is walked.

One forward pass guesses all positions of a block at once, each without knowing what the others will be. A Markov head
puts the dependence back: a bias of low rank from the tokens chosen before. The three kinds, and their names, are those
of DSpark (arXiv:2607.05147), whose `rnn` is `recurrent` here. All of them begin without effect.
"""

import torch
from torch import Tensor, nn

from draftd.blocks.config import BlockConfig, MarkovHeadType


class VanillaMarkovHead(nn.Module):
    """bias = W2 W1[previous]: a table of pairs, of low rank."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.rank = config.markov_rank
        self.previous = nn.Embedding(config.draft_vocab_size + 2, self.rank)  # W1: the drafter's own ids
        self.bias = nn.Linear(self.rank, config.draft_vocab_size, bias=False)  # W2
        nn.init.zeros_(self.bias.weight)

    def first_state(self, hidden: Tensor) -> Tensor:
        """float32[rows, rank], before any token of a block; `hidden`: float32[rows, hidden size]."""
        return hidden.new_zeros(len(hidden), self.rank)

    def step(self, previous: Tensor, hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """What is added to the logits of the next position, float32[rows, draft vocabulary], and the new state.

        `previous`: int64[rows], own ids of the tokens before it; `hidden`: float32[rows, hidden size], of the position;
        `state`: float32[rows, rank]."""
        del hidden
        return self.bias(self.previous(previous)), state


class GatedMarkovHead(VanillaMarkovHead):
    """bias = W2 (g * W1[previous]), g = sigmoid(G [hidden, W1[previous]]): the position says what of it counts."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__(config)
        self.gate = nn.Linear(config.hidden_size + self.rank, self.rank)

    def step(self, previous: Tensor, hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        embedded = self.previous(previous)
        gate = torch.sigmoid(self.gate(torch.cat([hidden, embedded], -1)))
        return self.bias(gate * embedded), state


class RecurrentMarkovHead(VanillaMarkovHead):
    """bias = W2 s, s = GRU(W1[previous], s): every token chosen so far counts."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__(config)
        self.cell = nn.GRUCell(self.rank, self.rank)

    def step(self, previous: Tensor, hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        del hidden
        state = self.cell(self.previous(previous), state)
        return self.bias(state), state


MARKOV_HEADS: dict[MarkovHeadType, type[VanillaMarkovHead]] = {
    "vanilla": VanillaMarkovHead,
    "gated": GatedMarkovHead,
    "recurrent": RecurrentMarkovHead,
}
