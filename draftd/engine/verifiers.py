"""Which verifiers there are: who said hello, when each was last heard, what tails it takes, and who paces it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from draftd.engine.paces import VerifierPacer
from draftd.pacing.pacer import Belief
from draftd.wire import Hello, TailKind

MOST_VERIFIERS = 1024  # known at a time; each may keep a table of costs
MOST_BELIEFS = 16  # verifiers that metrics tell of, so that they stay few
LONGEST_NAME = 64  # characters


@dataclass(slots=True)
class Verifier:
    name: str
    last_heard: float  # seconds
    takes_trees: bool  # otherwise all of its drafts are chains
    takes_tapes: bool
    pacer: VerifierPacer | None  # None: its steps are drafted as it asks
    pacing_asked: bytes  # digest of what the greeting says of pacing


class Verifiers:
    """By incarnation. Every transport's thread asks here."""

    def __init__(self, make_pacer: Callable[[Hello], VerifierPacer | None]) -> None:
        self._make_pacer = make_pacer
        self._known: dict[int, Verifier] = {}
        self._lock = threading.Lock()

    def greet(self, hello: Hello, now: float) -> None:
        """A verifier that says nothing of tail kinds takes all. One that greets again, as after a lost connection, and
        says the same of pacing goes on with what was learned. The longest silent goes where there are too many. Raises
        ValueError, naming the field, for what can't be meant; then it is not greeted."""
        takes_trees = not hello.accepts or TailKind.TREE in hello.accepts
        takes_tapes = not hello.accepts or TailKind.TAPE in hello.accepts
        pacer, asked = self._make_pacer(hello), _pacing_asked(hello)
        verifier = Verifier(hello.verifier[:LONGEST_NAME], now, takes_trees, takes_tapes, pacer, asked)
        with self._lock:
            before = self._known.pop(hello.incarnation, None)  # the one greeted last stands last
            if before is not None and before.pacing_asked == asked:
                verifier.pacer = before.pacer
            while len(self._known) >= MOST_VERIFIERS:
                del self._known[min(self._known, key=lambda key: self._known[key].last_heard)]
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
        paced: dict[str, VerifierPacer] = {}
        with self._lock:
            for verifier in self._known.values():
                if verifier.pacer is not None:
                    paced.pop(verifier.name, None)  # a name stands where it was greeted last
                    paced[verifier.name] = verifier.pacer
        latest = islice(reversed(paced.items()), MOST_BELIEFS)
        return {name: pacer.belief() for name, pacer in latest}


def _pacing_asked(hello: Hello) -> bytes:
    asked = Hello(graph_sizes=hello.graph_sizes)
    if hello.HasField("pacing"):
        asked.pacing = hello.pacing
    if hello.HasField("cost"):
        asked.cost.CopyFrom(hello.cost)
    return sha256(asked.SerializeToString()).digest()
