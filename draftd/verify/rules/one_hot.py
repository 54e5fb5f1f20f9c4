"""Sampling, for drafts without probabilities: chains and trees."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict
from draftd.verify.rules.siblings import siblings_in_turn


@dataclass(frozen=True, slots=True)
class OneHot:
    """Accepts a drafted token with the target's probability of it; a sibling's turn comes when those before it are
    rejected, and its probability is its share of what they left.

    Lossless, for drafts that are made without a glance at the target's next tokens, as draftd's are. It is rejection
    sampling (Leviathan et al., arXiv 2211.17192) for a draft distribution with all its weight on one token, which
    leaves the target without that token. With siblings it is multi-step speculative sampling (SpecInfer, arXiv
    2305.09781) without replacement (recursive rejection sampling: Jeon et al., arXiv 2402.14160).
    """

    lossless: ClassVar = True

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        def accepts(probability: float, rejected: float) -> bool:
            return chance.happens(probability / max(1.0 - rejected, probability))

        return siblings_in_turn(proposal, target, accepts, chance)
