"""A draft source that reads the target's hidden states: a small head guesses the state of the next token from that of
the last one and the token that was drawn from it, and so on from its own guesses.

That is the idea of Hydra and EAGLE (docs/methods.md) with one layer and no attention. draftd_state_head_training.py
trains it; docs/sources.md goes through it.
"""

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from draftd.sources import Batch, HiddenStates, Lane, Nature, Need, Outcome, Proposals, Shape
from draftd.sources.source import begins

Floats = NDArray[np.float32]


@dataclass
class Known:
    """A request's text, and the target's newest state of it that came."""

    text: array = field(default_factory=lambda: array("i"))
    position: int = -1  # of the state
    state: Floats | None = None

    def put(self, start: int, tokens: array) -> None:
        """From `start` on the text is `tokens`, and ends with them. A state of other tokens is of no use any more."""
        read = self.text[start : self.position + 1]  # by the target, up to its state
        if tokens[: len(read)] != read:
            self.state = None
        self.text[start:] = tokens

    @property
    def can_draft(self) -> bool:
        """The state belongs to the token before the last: the last one was drawn from it."""
        return self.state is not None and self.position == len(self.text) - 2


class StateHead:
    """Chains, with the survival that the head states."""

    nature = Nature(
        needs=frozenset({Need.TOKENS, Need.HIDDEN_STATES}),
        shape=Shape.CHAIN,
        states_survival=True,
        lane=Lane.THREAD,
        call_micros=1000.0,
        row_micros=1000.0,
    )

    def __init__(self, checkpoint: str | Path, longest: int = 4) -> None:
        """`checkpoint`: a file that the training wrote; `longest`: tokens of a chain."""
        weights = np.load(checkpoint)
        self._ids: NDArray[np.int32] = weights["ids"]  # ascending: the tokens that the head knows
        self._embeddings: Floats = weights["embeddings"]  # [ids, width], of the target's output head
        self._inner: Floats = weights["inner"]  # [2 * width, inner width]
        self._outer: Floats = weights["outer"]  # [inner width, width]
        self._longest = longest
        self._requests: dict[int, Known] = {}

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        known = self._take(batch)
        lengths = np.where([one.can_draft for one in known], np.minimum(budget, self._longest), 0)
        rows = np.flatnonzero(lengths)
        tokens, survival = np.empty(0, np.int32), np.empty(0, np.float32)
        if len(rows):
            states = np.stack([known[row].state for row in rows])
            last = np.array([known[row].text[-1] for row in rows], np.int32)
            with np.errstate(all="ignore"):
                tokens, survival = self._chains(states, last)
            lengths[rows[~np.isfinite(survival).all(axis=1)]] = 0  # one row must not spoil the others' answer
            wanted = np.arange(self._longest) < lengths[rows, None]
            tokens, survival = tokens[wanted], survival[wanted]
        return Proposals(np.cumsum(lengths, dtype=np.uint32), tokens, survival=survival)

    def observe(self, outcome: Outcome) -> None:
        for request in outcome.ended.tolist():
            self._requests.pop(request, None)

    def close(self) -> None:
        self._requests.clear()

    def memory(self) -> int:
        """Bytes of weights, texts and states."""
        weights = sum(array.nbytes for array in (self._ids, self._embeddings, self._inner, self._outer))
        states = sum(known.state.nbytes for known in self._requests.values() if known.state is not None)
        return weights + states + sum(known.text.itemsize * len(known.text) for known in self._requests.values())

    def _take(self, batch: Batch) -> list[Known]:
        assert batch.hidden is not None  # it needs them, as its nature says
        known = [self._requests.setdefault(request, Known()) for request in batch.request.tolist()]
        first = begins(batch.token_end)
        for one, start, part in zip(known, batch.start.tolist(), zip(first, batch.token_end, strict=True), strict=True):
            one.put(start, array("i", batch.tokens[slice(*part)].tobytes()))
        self._take_states(known, batch.hidden)
        return known

    def _take_states(self, known: list[Known], hidden: HiddenStates) -> None:
        """Of each row the newest; those before it the head has no use for."""
        width = self._embeddings.shape[1]
        if len(hidden.values) and hidden.values.shape[1] != width:
            raise ValueError(f"hidden states are {hidden.values.shape[1]} wide; the head was trained for {width}")
        first = begins(hidden.end)
        for row in np.flatnonzero(hidden.end > first).tolist():
            known[row].position = int(hidden.start[row] + hidden.end[row] - first[row]) - 1
            known[row].state = hidden.values[hidden.end[row] - 1].astype(np.float32)

    def _chains(self, states: Floats, tokens: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
        """The likeliest token at each place behind `tokens`, and its survival: both [rows, longest]."""
        chain, survival = [], []
        reached = np.ones(len(tokens), np.float32)
        for _ in range(self._longest):
            together = np.concatenate((states, self._embedded(tokens)), axis=1) @ self._inner
            states = states + (together * (1 + np.tanh(together / 2)) / 2) @ self._outer  # SiLU, which can't overflow
            scores = states @ self._embeddings.T
            best = scores.argmax(axis=1)
            tokens = self._ids[best]
            reached = reached / np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)
            chain.append(tokens)
            survival.append(reached)
        return np.stack(chain, axis=1), np.stack(survival, axis=1)

    def _embedded(self, tokens: NDArray[np.int32]) -> Floats:
        """Of a token that the head does not know, nothing."""
        place = np.minimum(np.searchsorted(self._ids, tokens), len(self._ids) - 1)
        return self._embeddings[place] * (self._ids[place] == tokens)[:, None]
