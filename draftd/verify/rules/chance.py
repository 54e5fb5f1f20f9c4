"""Where rules get their random decisions from, so that tests can go through all of them."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Chance(Protocol):
    """Two kinds of decision are all that a rule needs."""

    def happens(self, probability: float) -> bool:
        """True with that probability; never at 0 or below, always at 1 or above."""

    def draw(self, weights: NDArray[np.float64]) -> int:
        """An index, with a probability in proportion to its weight. Weights are not negative, and not all 0."""


class Dice:
    """Pseudo-random decisions; the same seed, the same decisions."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def happens(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def draw(self, weights: NDArray[np.float64]) -> int:
        sums = weights.cumsum()
        index = int(sums.searchsorted(self._random.random() * sums[-1], side="right"))
        return min(index, int(weights.nonzero()[0][-1]))  # the smallest numbers: a share rounds up to all
