"""Which verifiers there are: who said hello, when each was last heard, and what tails it takes."""

import threading
from dataclasses import dataclass

from draftd.wire import Hello, TailKind


@dataclass(slots=True)
class Verifier:
    last_heard: float  # seconds
    takes_trees: bool  # otherwise all of its drafts are chains


class Verifiers:
    """By incarnation. Every transport's thread asks here."""

    def __init__(self) -> None:
        self._known: dict[int, Verifier] = {}
        self._lock = threading.Lock()

    def greet(self, hello: Hello, now: float) -> None:
        """A verifier that says nothing of tail kinds takes all."""
        takes_trees = not hello.accepts or TailKind.TREE in hello.accepts
        with self._lock:
            self._known[hello.incarnation] = Verifier(now, takes_trees)

    def heard(self, incarnation: int, now: float) -> Verifier | None:
        """The verifier that just sent something; None if it never said hello, or was silent for too long since."""
        with self._lock:
            verifier = self._known.get(incarnation)
            if verifier is not None:
                verifier.last_heard = now
            return verifier

    def forget_silent(self, since: float) -> None:
        with self._lock:
            silent = [key for key, verifier in self._known.items() if verifier.last_heard < since]
            for incarnation in silent:
                del self._known[incarnation]
