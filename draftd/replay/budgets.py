"""How many nodes a step may draft: a fixed number, or a mean over a whole file."""

import math
from typing import Protocol


class StepBudget(Protocol):
    """Says before each step what may be drafted, and hears afterwards what was."""

    @property
    def min_survival(self) -> float:
        """Nodes below are not drafted."""

    def nodes(self, requests: int) -> int:
        """Most nodes of each of the requests that are drafted for in the next step."""

    def spent(self, nodes: int) -> None:
        """One request of the step was drafted this many nodes."""


class FixedBudget:
    """The same limit in every step."""

    def __init__(self, nodes: int, min_survival: float = 0.0) -> None:
        self._nodes = nodes
        self._min_survival = min_survival

    @property
    def min_survival(self) -> float:
        return self._min_survival

    def nodes(self, requests: int) -> int:
        del requests
        return self._nodes

    def spent(self, nodes: int) -> None:
        pass


class MeanBudget:
    """A survival threshold that moves until the mean number of nodes is the one wished for.

    Each request of a step earns `mean` nodes and spends what it drafts; the threshold is START * exp(-RATE * saved),
    so savings lower it. START is above the threshold where real traffic settles, so there usually are savings, and a
    step that would overdraw them is cut: the mean is never above `mean`, at no point of a replay. No request gets more
    than twice the mean in a step.
    """

    START = 0.3
    RATE = 0.003  # per node saved

    def __init__(self, mean: int) -> None:
        self._mean = mean
        self._saved = 0

    @property
    def min_survival(self) -> float:
        return self.START * math.exp(-self.RATE * self._saved)

    def nodes(self, requests: int) -> int:
        return self._mean + min(self._mean, self._saved // requests)

    def spent(self, nodes: int) -> None:
        self._saved += self._mean - nodes
