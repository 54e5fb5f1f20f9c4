"""SGLang's acceptance thresholds: more tokens are accepted, and the distribution is another one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict
from draftd.verify.rules.siblings import siblings_in_turn


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Accepts a drafted token if the target's probability of it is at least `single`, and else 1 / `accumulated` times
    as often as OneHot.

    LOSSY, unless both are 1.0, which is OneHot. SGLang's kernel TreeSpeculativeSamplingTargetOnly (0.5.23) with
    `--speculative-accept-threshold-single` and `--speculative-accept-threshold-acc`. The kernel has one coin for all
    siblings and takes the first one whose probability, with those of the siblings before it, is above the coin times
    `accumulated`. Given that those before were not taken, that is a decision for each, and so it is made here.
    Raises ValueError for a threshold that is not from 0 to 1.
    """

    single: float = 1.0
    accumulated: float = 1.0

    lossless: ClassVar = False

    def __post_init__(self) -> None:
        for name, threshold in (("single", self.single), ("accumulated", self.accumulated)):
            if not 0.0 <= threshold <= 1.0:
                raise ValueError(f"the threshold {name} is {threshold}; give a number from 0 to 1")

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        def accepts(probability: float, rejected: float) -> bool:
            if probability >= self.single:
                return True
            return chance.happens(probability / max(self.accumulated - rejected, probability))

        return siblings_in_turn(proposal, target, accepts, chance)
