"""When it is worth asking a draft source: by what its nodes brought where it was asked.

Where it was asked, the draft of the indexes alone is known as well, and how far it has the tokens that came: so what
asking brings is known without ever leaving it out.
"""

from bisect import bisect
from dataclasses import dataclass

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Of the tokens that the indexes' drafts are expected to yield, by class."""

FIRST = 16
"""Outcomes before a class is judged; until then it is worth asking."""

SLOWEST = 1 / 128
"""By how much of the latest outcome a mean moves, at least: traffic changes."""

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, lie evenly, also every second, eighth or any other of them: so trials
come to all rows of a batch, whatever its size."""

SOON, LATER, SETTLED = 8, 32, 64
"""Where asking does not pay, it is done one of so many times all the same, so that a source that has become good is
found out: soon until the class has come up as often as it takes to settle, then later."""


@dataclass(slots=True)
class _Class:
    outcomes: int = 0
    gain: float = 0.0  # tokens, the mean
    decisions: int = 0


class Worth:
    """Pure: drafts and what became of them come in. One for each namespace and source; where steps of several verifiers
    interleave, an outcome may get lost, which is one of many."""

    def __init__(self, least_gain: float) -> None:
        """`least_gain`: accepted tokens that asking has to bring a request."""
        self._least_gain = least_gain
        self._classes = [_Class() for _ in range(len(BOUNDS) + 1)]

    def asks(self, expected: float) -> bool:
        """`expected`: accepted tokens, by the survival of the indexes' nodes."""
        of_class = self._classes[bisect(BOUNDS, expected)]
        of_class.decisions += 1
        if of_class.outcomes < FIRST or of_class.gain >= self._least_gain:
            return True
        every = LATER if of_class.decisions > SETTLED else SOON
        return of_class.decisions * GOLDEN % 1 < 1 / every

    def learn(self, expected: float, gain: int) -> None:
        """Of a draft for which it was asked, and of which the indexes expected so much: accepted tokens more than their
        draft alone has of those that came; less than 0 where that has more."""
        of_class = self._classes[bisect(BOUNDS, expected)]
        of_class.outcomes += 1
        of_class.gain += max(1 / of_class.outcomes, SLOWEST) * (gain - of_class.gain)
