"""Sampling, for chains that were sampled: all of a chain is judged at once."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict
from draftd.verify.rules.weights import excess


@dataclass(frozen=True, slots=True)
class Block:
    """Accepts the longest beginning of the chain that its own chance decides for.

    Lossless, if drafts were sampled as Proposal.probabilities says, and never accepts less than Rejection on average:
    block verification, Sun et al., arXiv 2403.10444, algorithm 2. Decided from the whole chain downwards, which is the
    same: only the longest accepted beginning counts. Raises ValueError for a proposal that is no chain or has no
    probabilities.
    """

    lossless: ClassVar = True

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        chain, draft = proposal.chain(), proposal.sampled_from()
        length = len(chain)
        kept = [1.0]  # the paper's p: of each beginning's probability in the draft, the share that the target bears out
        for place, token in enumerate(chain):
            kept.append(min(kept[-1] * target[place, token] / draft[place, token], 1.0))

        accepted = length
        while accepted and not chance.happens(_acceptance(accepted, length, kept, target, draft)):
            accepted -= 1
        left = target[length] if accepted == length else excess(kept[accepted] * target[accepted], draft[accepted])
        return Verdict(list(range(accepted)), chance.draw(left))


def _acceptance(
    accepted: int, length: int, kept: list[float], target: NDArray[np.float64], draft: NDArray[np.float64]
) -> float:
    """The paper's h: how often this beginning is accepted where no longer one is."""
    if accepted == length:
        return kept[length]
    left = float(np.maximum(kept[accepted] * target[accepted] - draft[accepted], 0.0).sum())
    return left / (left + 1.0 - kept[accepted]) if left > 0.0 else 0.0
