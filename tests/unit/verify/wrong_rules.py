"""Rules with the mistakes that one makes: each test of losslessness has to find them."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules import Block, Chance, OneHot, Proposal, Rejection, Verdict


class ForgetsWhatWasRejected:
    """Draws the bonus from all of the target, as if nothing had been rejected."""

    lossless: ClassVar = False

    def __init__(self, rule: OneHot | Rejection | Block) -> None:
        self._rule = rule

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        path = self._rule.verify(proposal, target, chance).path
        return Verdict(path, chance.draw(target[path[-1] + 1 if path else 0]))


class TakesSiblingsForFirst:
    """Accepts each sibling with the target's probability, not with its share of what those before it left."""

    lossless: ClassVar = False

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        left = target.copy()
        for node, (token, parent) in enumerate(zip(proposal.tokens, proposal.parents, strict=True)):
            if parent == -1:
                if chance.happens(target[0, token]):
                    return Verdict([node], chance.draw(target[node + 1]))
                left[0, token] = 0.0
        return Verdict([], chance.draw(left[0] if left[0].any() else target[0]))


class SamplesWithReplacement:
    """Rejects siblings as if each had been sampled from the whole draft distribution."""

    lossless: ClassVar = False

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        draft, left = proposal.sampled_from()[0], target[0]
        for node in proposal.children[0]:
            token = proposal.tokens[node]
            if chance.happens(left[token] / draft[token]):
                return Verdict([node], chance.draw(target[node + 1]))
            excess = np.maximum(left - draft, 0.0)
            left = excess / excess.sum() if excess.any() else left
        return Verdict([], chance.draw(left))


class LeavesOutTheShare:
    """Block verification whose bonus comes from target minus draft, without the share that the paper calls p."""

    lossless: ClassVar = False

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        path = Block().verify(proposal, target, chance).path
        accepted = len(path)
        if accepted == len(proposal.tokens):
            return Verdict(path, chance.draw(target[accepted]))
        excess = np.maximum(target[accepted] - proposal.sampled_from()[accepted], 0.0)
        return Verdict(path, chance.draw(excess if excess.any() else target[accepted]))


class AcceptsByTheShare:
    """Block verification that accepts each beginning with the probability that the paper calls p, not h."""

    lossless: ClassVar = False

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        draft, tokens = proposal.sampled_from(), proposal.tokens.tolist()
        shares = [1.0]
        for place, token in enumerate(tokens):
            shares.append(min(1.0, shares[-1] * target[place, token] / draft[place, token]))
        accepted = len(tokens)
        while not chance.happens(shares[accepted]):
            accepted -= 1
        if accepted == len(tokens):
            return Verdict(list(range(accepted)), chance.draw(target[accepted]))
        excess = np.maximum(shares[accepted] * target[accepted] - draft[accepted], 0.0)
        return Verdict(list(range(accepted)), chance.draw(excess if excess.any() else target[accepted]))
