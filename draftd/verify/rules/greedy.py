"""Greedy decoding, chains and trees."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict


@dataclass(frozen=True, slots=True)
class Greedy:
    """Accepts the path that the target's likeliest tokens take through the tree.

    Lossless: emits what greedy decoding does, token for token; of equal probabilities the smaller id. Chains: Stern et
    al., arXiv 1811.03115. Trees: SpecInfer, arXiv 2305.09781, its VerifyGreedy.
    """

    lossless: ClassVar = True

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:  # noqa: ARG002
        path: list[int] = []
        row = 0
        while True:
            likeliest = int(target[row].argmax())
            agreeing = [node for node in proposal.children[row] if proposal.tokens[node] == likeliest]
            if not agreeing:
                return Verdict(path, likeliest)
            path += agreeing
            row = agreeing[0] + 1
