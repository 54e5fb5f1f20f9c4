"""When it is worth asking a draft source: by what was accepted where it was asked, and where it was not."""

from bisect import bisect
from dataclasses import dataclass, field

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Of the tokens that the indexes' drafts are expected to yield, by class."""

FIRST = 8
"""Outcomes of drafts for which it was asked before a class is judged; until then it is worth asking."""

SLOWEST = 1 / 128
"""By how much of the latest outcome a mean moves, at least: traffic changes."""

SOON, LATER, SETTLED = 8, 32, 64
"""One of so many times the other thing is done, so that it stays known what comes of that: soon while it does not pay
to ask, until the class has come up as often as it takes to settle; else later."""


@dataclass(slots=True)
class _Mean:
    count: int = 0
    value: float = 0.0

    def add(self, outcome: float) -> None:
        self.count += 1
        self.value += max(1 / self.count, SLOWEST) * (outcome - self.value)


@dataclass(slots=True)
class _Class:
    """What was accepted beyond what the indexes' drafts were expected to yield."""

    asked: _Mean = field(default_factory=_Mean)
    alone: _Mean = field(default_factory=_Mean)
    decisions: int = 0


class Worth:
    """Pure: drafts and what became of them come in. One for each namespace and source; where steps of several verifiers
    interleave, an outcome may get lost, which is one of many.

    Survival is right on the whole; where it is wrong, as of text that the indexes don't know, the outcomes show it."""

    def __init__(self, least_gain: float) -> None:
        """`least_gain`: accepted tokens that asking has to bring a request."""
        self._least_gain = least_gain
        self._classes = [_Class() for _ in range(len(BOUNDS) + 1)]

    def asks(self, expected: float) -> bool:
        """`expected`: accepted tokens, by the survival of the indexes' nodes."""
        of_class = self._classes[bisect(BOUNDS, expected)]
        of_class.decisions += 1
        gain = of_class.asked.value - of_class.alone.value
        pays = of_class.asked.count < FIRST or gain >= self._least_gain
        every = LATER if pays or of_class.decisions > SETTLED else SOON
        return pays != (of_class.decisions % every == 0)

    def learn(self, expected: float, accepted: int, *, asked: bool) -> None:
        """What became of a draft of which the indexes expected so much."""
        of_class = self._classes[bisect(BOUNDS, expected)]
        (of_class.asked if asked else of_class.alone).add(accepted - expected)
