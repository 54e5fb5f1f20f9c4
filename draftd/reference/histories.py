"""The calls of an engine about its histories, slow and readable; draftd/native/_core.pyi says what each means."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from draftd.reference.history import Document
from draftd.reference.segment import Segment
from draftd.reference.texts import Namespace


@dataclass(frozen=True, slots=True)
class HistoryDocuments:
    """Columns, as lists."""

    namespace: int
    group: str
    generation: int
    token_ids: list[int]
    document_ends: list[int]
    labels: list[str]
    times: list[int]


@dataclass(frozen=True, slots=True)
class HistoryState:
    """Without bytes, which are not modelled."""

    namespace: int
    group: str
    generation: int
    head_tokens: int
    frozen_tokens: int
    segments: int
    oldest: int


class Histories:
    def __init__(self) -> None:
        self._namespaces: list[Namespace] = []

    def drain_history(self) -> list[HistoryDocuments]:
        return [
            _columns(number, group, generation, documents)
            for number, namespace in enumerate(self._namespaces)
            for group, history in namespace.histories()
            for generation, documents in history.drain()
        ]

    def histories(self) -> list[HistoryState]:
        return [
            HistoryState(
                namespace=number,
                group=group,
                generation=history.head.generation,
                head_tokens=history.head.index.tokens,
                frozen_tokens=history.frozen.index.tokens if history.frozen else 0,
                segments=len(history.segments),
                oldest=history.oldest,
            )
            for number, namespace in enumerate(self._namespaces)
            for group, history in namespace.histories()
        ]

    def freeze_history(self, namespace: int, group: str) -> HistoryDocuments | None:
        home = self._namespaces[namespace]
        if group and group not in home.groups:
            return None
        frozen = home.history_of(group).freeze()
        return _columns(namespace, group, frozen.generation, frozen.documents) if frozen else None

    def publish_history(
        self, namespace: int, group: str, segments: Sequence[Segment], *, drop_frozen: bool, now: float
    ) -> None:
        del now  # what is longest unused goes first, but nothing goes here
        self._namespaces[namespace].history_of(group).publish(list(segments), drop_frozen=drop_frozen)

    def restore_history(
        self,
        *,
        namespace: int,
        group: str,
        generation: int,
        token_ids: Sequence[int],
        document_ends: Sequence[int],
        labels: Sequence[str],
        times: Sequence[int],
        now: float,
    ) -> None:
        del now
        bounds = pairwise([0, *document_ends])
        documents = [
            Document(label, time, list(token_ids[begin:end]))
            for label, time, (begin, end) in zip(labels, times, bounds, strict=True)
        ]
        self._namespaces[namespace].history_of(group).restore(generation, documents)


def _columns(namespace: int, group: str, generation: int, documents: Sequence[Document]) -> HistoryDocuments:
    return HistoryDocuments(
        namespace=namespace,
        group=group,
        generation=generation,
        token_ids=[token for document in documents for token in document.text],
        document_ends=list(accumulate(len(document.text) for document in documents)),
        labels=[document.label for document in documents],
        times=[document.time for document in documents],
    )
