"""A draft source of one's own: after each token, what followed it last time in the request's text.

docs/sources.md goes through it.
"""

import sys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from draftd.sources import Batch, Lane, Nature, Need, Outcome, Proposals, Shape


@dataclass
class Known:
    """A request's text, and each token's latest follower in it."""

    text: list[int] = field(default_factory=list)
    follower: dict[int, int] = field(default_factory=dict)

    def put(self, start: int, tokens: list[int]) -> None:
        """From `start` on the text is `tokens`, and ends with them."""
        if start < len(self.text):  # something was taken back
            tokens = self.text[:start] + tokens
            self.text, self.follower = [], {}
        for token in tokens:
            if self.text:
                self.follower[self.text[-1]] = token
            self.text.append(token)

    def chain(self, most: int) -> list[int]:
        chain: list[int] = []
        token = self.text[-1] if self.text else None
        while len(chain) < most and token in self.follower:
            token = self.follower[token]
            chain.append(token)
        return chain


class LastPair:
    """Chains, with the survival that earlier ones had."""

    nature = Nature(
        needs=frozenset({Need.TOKENS}),
        shape=Shape.CHAIN,
        states_survival=True,
        lane=Lane.THREAD,  # it works in Python: a step must be able to leave it behind
        call_micros=100.0,
        row_micros=20.0,
    )

    def __init__(self) -> None:
        self._requests: dict[int, Known] = {}
        self._verified, self._accepted = 2, 1  # before anything is known: half of them

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        parts = np.split(batch.tokens, batch.token_end[:-1]) if len(budget) else []
        chains = []
        for request, start, part, most in zip(
            batch.request.tolist(), batch.start.tolist(), parts, budget.tolist(), strict=True
        ):
            known = self._requests.setdefault(request, Known())
            known.put(start, part.tolist())
            chains.append(known.chain(most))
        depths = np.array([depth for chain in chains for depth in range(1, len(chain) + 1)], np.float32)
        share = np.float32(self._accepted / self._verified)
        return Proposals(
            node_end=np.cumsum([len(chain) for chain in chains], dtype=np.uint32),
            tokens=np.array([token for chain in chains for token in chain], np.int32),
            survival=share**depths,
        )

    def observe(self, outcome: Outcome) -> None:
        # Of a chain, nodes were tried up to the first that was rejected.
        self._accepted += int(outcome.accepted.sum())
        self._verified += int(np.minimum(outcome.accepted + 1, outcome.verified).sum())
        for request in outcome.ended.tolist():
            self._requests.pop(request, None)

    def close(self) -> None:
        self._requests.clear()

    def memory(self) -> int:
        """Bytes, about: a word for each token, and a table of three for each pair."""
        return sum(sys.getsizeof(known.text) + sys.getsizeof(known.follower) for known in self._requests.values())
