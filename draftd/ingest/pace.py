"""How fast something goes on."""

from collections import deque

SECONDS = 5.0  # that the present pace is taken over: what a start or a wait took is soon forgotten


class Pace:
    """Of a count that grows; `now` is on a clock that does."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now: float, count: int) -> None:
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - SECONDS:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """0 before it can be told."""
        if len(self._seen) < 2:
            return 0.0
        (start, before), (end, after) = self._seen[0], self._seen[-1]
        return (after - before) / (end - start) if end > start else 0.0
