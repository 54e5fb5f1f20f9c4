"""Down a tree whose nodes were not sampled, siblings in turn: what OneHot and Thresholds share."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict
from draftd.verify.rules.weights import without

# Is a token accepted? Of the target's probability of it, and that of the siblings before it, which were rejected.
Accepts = Callable[[float, float], bool]


def siblings_in_turn(proposal: Proposal, target: NDArray[np.float64], accepts: Accepts, chance: Chance) -> Verdict:
    """The first sibling that is accepted is followed. Where none is, the target's distribution without them decides.

    Tokens that the target never emits are not accepted, whatever `accepts` says.
    """
    path: list[int] = []
    row = 0
    while (node := _first_accepted(proposal, row, target[row], accepts)) is not None:
        path.append(node)
        row = node + 1
    rejected = proposal.tokens[proposal.children[row]]
    return Verdict(path, chance.draw(without(target[row], rejected)))


def _first_accepted(proposal: Proposal, row: int, target: NDArray[np.float64], accepts: Accepts) -> int | None:
    rejected = 0.0
    for node in proposal.children[row]:
        probability = float(target[proposal.tokens[node]])
        if probability > 0.0 and accepts(probability, rejected):
            return node
        rejected += probability
    return None
