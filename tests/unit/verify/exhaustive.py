"""Every way that chance can go, with its probability: what rules do exactly, not only in a sample."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules import Chance

Outcome = TypeVar("Outcome", bound=Hashable)
Decisions = tuple[int, ...]


class _Scripted:
    """Decides as the script says, then always takes the first way open, and notes the ways that it did not take."""

    def __init__(self, script: Decisions) -> None:
        self.probability = 1.0
        self.untaken: list[Decisions] = []
        self._script = script
        self._decided: list[int] = []

    def happens(self, probability: float) -> bool:
        probability = min(max(float(probability), 0.0), 1.0)
        return self._decide([1.0 - probability, probability]) == 1

    def draw(self, weights: NDArray[np.float64]) -> int:
        assert weights.min() >= 0.0
        return self._decide((weights / weights.sum()).tolist())

    def _decide(self, probabilities: list[float]) -> int:
        place = len(self._decided)
        if place < len(self._script):
            decision = self._script[place]
        else:
            decision, *others = (index for index, probability in enumerate(probabilities) if probability > 0.0)
            self.untaken += [(*self._decided, other) for other in others]
        self._decided.append(decision)
        self.probability *= probabilities[decision]
        return decision


def distribution(experiment: Callable[[Chance], Outcome]) -> dict[Outcome, float]:
    """The probability of each outcome."""
    found: dict[Outcome, float] = defaultdict(float)
    scripts: list[Decisions] = [()]
    while scripts:
        chance = _Scripted(scripts.pop())
        found[experiment(chance)] += chance.probability
        scripts += chance.untaken
    assert abs(sum(found.values()) - 1.0) < 1e-9
    return found
