"""Sampling, for drafts that were sampled themselves: chains and trees."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict
from draftd.verify.rules.weights import excess


@dataclass(frozen=True, slots=True)
class Rejection:
    """Accepts a drafted token as often as the target's probability of it is of the draft's, at most always. A rejection
    leaves what the target has more of than the draft.

    Lossless, if drafts were sampled as Proposal.probabilities says. Chains: speculative sampling, Leviathan et al.,
    arXiv 2211.17192, and Chen et al., arXiv 2302.01318. Trees: recursive rejection sampling, Jeon et al., arXiv
    2402.14160: what a rejection left is the target of the next sibling, which was sampled without replacement. Raises
    ValueError for a proposal without probabilities.
    """

    lossless: ClassVar = True

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        sampled_from = proposal.sampled_from()
        path: list[int] = []
        row = 0
        while True:
            node, left = _first_accepted(proposal, row, target[row], sampled_from[row], chance)
            if node is None:
                return Verdict(path, chance.draw(left))
            path.append(node)
            row = node + 1


def _first_accepted(
    proposal: Proposal, row: int, target: NDArray[np.float64], draft: NDArray[np.float64], chance: Chance
) -> tuple[int | None, NDArray[np.float64]]:
    """The child that is accepted and, if there is none, what is left of the target."""
    for node in proposal.children[row]:
        token = proposal.tokens[node]
        draft = draft / draft.sum()
        if chance.happens(target[token] / draft[token]):
            return node, target
        left = excess(target, draft)
        target = left / left.sum()
        draft[token] = 0.0
    return None, target
