"""Which verifiers there are: who said hello, when each was last heard, what tails it takes, and who paces it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from draftd.engine.paces import VerifierPacer
from draftd.pacing.pacer import Belief
from draftd.wire import Hello, TailKind

MOST_BELIEFS = 16  # verifiers that metrics tell of, so that they stay few


@dataclass(slots=True)
class Verifier:
    name: str
    last_heard: float  # seconds
    takes_trees: bool  # otherwise all of its drafts are chains
    takes_tapes: bool
    pacer: VerifierPacer | None  # None: its steps are drafted as it asks


class Verifiers:
    """By incarnation. Every transport's thread asks here."""

    def __init__(self, make_pacer: Callable[[Hello], VerifierPacer | None]) -> None:
        self._make_pacer = make_pacer
        self._known: dict[int, Verifier] = {}
        self._lock = threading.Lock()

    def greet(self, hello: Hello, now: float) -> None:
        """A verifier that says nothing of tail kinds takes all. Raises ValueError, naming the field, for what can't be
        meant; then it is not greeted."""
        takes_trees = not hello.accepts or TailKind.TREE in hello.accepts
        takes_tapes = not hello.accepts or TailKind.TAPE in hello.accepts
        verifier = Verifier(hello.verifier, now, takes_trees, takes_tapes, self._make_pacer(hello))
        with self._lock:
            self._known.pop(hello.incarnation, None)  # the one greeted last stands last
            self._known[hello.incarnation] = verifier

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

    def beliefs(self) -> dict[str, Belief]:
        """What the pacers of those that were greeted last go by, by name; of one name, the last one's."""
        with self._lock:
            paced = {verifier.name: verifier.pacer for verifier in self._known.values() if verifier.pacer is not None}
        latest = islice(reversed(paced.items()), MOST_BELIEFS)
        return {name: pacer.belief() for name, pacer in latest}
