"""How long an engine's steps of decode take, seen from the place where it asks for drafts."""

import time
from collections.abc import Callable, Set

LONGEST_STEP = 10.0  # seconds; what takes longer is a pause of the engine's


class StepClock:
    """Measures from the moment drafts are handed over to the next time the engine asks: the forward pass, choosing
    tokens, and the engine's own scheduling, but not the round trip to draftd.

    Only of steps that were decode and nothing else: the very requests that drafts were handed over for have new tokens.
    With a request that came, a prefill was in it; with one that left, nobody says how wide it was.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = 0.0
        self._running: Set[str] = set()

    def begin(self, request_ids: Set[str]) -> None:
        """Drafts have been handed over for these; the engine goes on."""
        self._running = request_ids
        self._begun = self._clock()

    def seconds(self, request_ids: Set[str]) -> float | None:
        """That the step took which brought new tokens to these; None: it can't be told."""
        if not request_ids or request_ids != self._running:
            return None
        seconds = self._clock() - self._begun
        return seconds if seconds <= LONGEST_STEP else None

    def forget(self) -> None:
        """The engine did other work, too."""
        self._running = set()
