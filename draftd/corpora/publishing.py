"""Where collections become visible: the engine, as far as this room knows it."""

from collections.abc import Sequence
from typing import Protocol

from draftd.native import Segment
from draftd.wire import HistoryDocuments, HistoryState, Namespace


class Publisher(Protocol):
    """The engine. What it is given is what drafts read when the call returns."""

    def publish_corpus(self, namespace: Namespace, name: str, segments: Sequence[Segment]) -> None: ...

    def withdraw_corpus(self, namespace: Namespace, name: str) -> None: ...

    def drain_history(self) -> list[HistoryDocuments]: ...

    def histories(self) -> list[HistoryState]: ...

    def freeze_history(self, namespace: Namespace, group: str) -> HistoryDocuments | None: ...

    def publish_history(
        self, namespace: Namespace, group: str, segments: Sequence[Segment], *, drop_frozen: bool
    ) -> None: ...

    def restore_history(self, documents: HistoryDocuments) -> None: ...

    def forget_requests(self, owner: Namespace, group: str | None, request_ids: Sequence[str]) -> set[str]: ...

    def lessons(self) -> dict[Namespace, int]: ...

    def learned(self, namespace: Namespace) -> bytes: ...

    def restore_learned(self, namespace: Namespace, saved: bytes) -> None: ...

    def forget_learned(self, owner: Namespace) -> None: ...

    def settle(self, timeout: float) -> bool: ...


class CorpusView:
    """One corpus in the engine, in all namespaces that can read it, or, when one refuses, in none."""

    def __init__(self, publisher: Publisher, namespaces: Sequence[Namespace], corpus_id: str) -> None:
        self._publisher = publisher
        self._namespaces = namespaces
        self._corpus_id = corpus_id

    def show(self, segments: Sequence[Segment], _sealed: bool) -> None:
        done = []
        try:
            for namespace in self._namespaces:
                self._publisher.publish_corpus(namespace, self._corpus_id, segments)
                done.append(namespace)
        except BaseException:
            for namespace in done:
                self._publisher.withdraw_corpus(namespace, self._corpus_id)
            raise

    def withdraw(self) -> None:
        for namespace in self._namespaces:
            self._publisher.withdraw_corpus(namespace, self._corpus_id)


class HistoryView:
    """One history in the engine."""

    def __init__(self, publisher: Publisher, namespace: Namespace, group: str) -> None:
        self._publisher = publisher
        self._namespace = namespace
        self._group = group

    def show(self, segments: Sequence[Segment], sealed: bool) -> None:
        self._publisher.publish_history(self._namespace, self._group, segments, drop_frozen=sealed)
