"""Own texts of requests that have ended, for those that go on from them: the next turn of a conversation, of an agent.

Only what begins with exactly that text, in the same namespace, goes on from it. Then its drafts are those of a request
that indexed everything itself, and it learns nothing that it did not bring.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from draftd.reference.texts import Namespace, OwnText


@dataclass(frozen=True)
class Kept:
    namespace: Namespace
    own: OwnText
    since: float


class KeptTexts:
    def __init__(self) -> None:
        self._kept: list[Kept] = []

    @property
    def tokens(self) -> int:
        return sum(len(kept.own.indexed) for kept in self._kept)

    def keep(self, namespace: Namespace, own: OwnText, now: float) -> None:
        if own.indexed:
            self._kept.append(Kept(namespace, own, now))

    def take(self, namespace: Namespace, text: Sequence[int]) -> OwnText | None:
        """Takes out the longest that `text` begins with; of equal ones the newest."""
        fitting = [
            kept
            for kept in self._kept
            if kept.namespace is namespace and kept.own.indexed == list(text[: len(kept.own.indexed)])
        ]
        if not fitting:
            return None
        longest = max(reversed(fitting), key=lambda kept: len(kept.own.indexed))
        self._drop(lambda kept: kept is longest)
        return longest.own

    def expire(self, oldest: float) -> None:
        self._drop(lambda kept: kept.since < oldest)

    def forget(self, namespace: Namespace) -> None:
        self._drop(lambda kept: kept.namespace is namespace)

    def _drop(self, drops: Callable[[Kept], bool]) -> None:
        self._kept = [kept for kept in self._kept if not drops(kept)]
