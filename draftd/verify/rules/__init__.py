"""Acceptance rules: given what was drafted and the target's probabilities, what is emitted? One file for each.

They need numpy alone. docs/verify.md says when to use which.
"""

from draftd.verify.rules.block import Block
from draftd.verify.rules.chance import Chance, Dice
from draftd.verify.rules.greedy import Greedy
from draftd.verify.rules.one_hot import OneHot
from draftd.verify.rules.rejection import Rejection
from draftd.verify.rules.rule import Proposal, Rule, Verdict
from draftd.verify.rules.synthetic import Synthetic
from draftd.verify.rules.thresholds import Thresholds

__all__ = [
    "Block",
    "Chance",
    "Dice",
    "Greedy",
    "OneHot",
    "Proposal",
    "Rejection",
    "Rule",
    "Synthetic",
    "Thresholds",
    "Verdict",
]
