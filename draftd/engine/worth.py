"""When it is worth asking a draft source: what that brought where the indexes had as much as now."""

from bisect import bisect

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Of the tokens that the indexes' drafts are expected to yield, by class."""

FIRST_ASKS = 16
"""Of each class: before, nobody knows."""

RATE = 0.05
"""By how much of what it brought a class moves, later."""

EVERY = 64
"""Of the times that it is not worth it, one is tried: traffic changes."""


class Worth:
    """Pure: what the drafts of a request were expected to yield goes in, before and after the source was asked.

    One for each namespace and source. Steps of several verifiers may interleave: what gets lost then is one move of an
    average."""

    def __init__(self, least_gain: float) -> None:
        """`least_gain`: accepted tokens that asking has to bring a request."""
        self._least_gain = least_gain
        self._asks = [0] * (len(BOUNDS) + 1)
        self._gains = [0.0] * (len(BOUNDS) + 1)
        self._passed_over = [0] * (len(BOUNDS) + 1)

    def asks(self, expected: float) -> bool:
        """`expected`: accepted tokens, by the survival of the indexes' nodes."""
        place = bisect(BOUNDS, expected)
        if self._asks[place] < FIRST_ASKS or self._gains[place] >= self._least_gain:
            return True
        self._passed_over[place] += 1
        return self._passed_over[place] % EVERY == 0

    def learn(self, expected: float, afterwards: float) -> None:
        place = bisect(BOUNDS, expected)
        self._asks[place] += 1
        rate = max(1 / self._asks[place], RATE)
        self._gains[place] += rate * (afterwards - expected - self._gains[place])
