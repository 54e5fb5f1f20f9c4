"""An engine that only remembers what it was given: what drafts would read."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from draftd import native
from draftd.native import Segment
from draftd.wire import HistoryDocuments, HistoryState, Namespace

Texts = list[list[int]]
Key = tuple[Namespace, str]


class Full(Exception):
    """What the engine raises for one corpus too many."""


@dataclass(slots=True)
class Document:
    tokens: list[int]
    label: str
    time: int


@dataclass(slots=True)
class History:
    """A live head, perhaps a frozen one, and segments."""

    generation: int = 1
    head: list[Document] = field(default_factory=list)
    undrained: list[tuple[int, Document]] = field(default_factory=list)
    frozen: list[Document] | None = None
    segments: Sequence[Segment] = ()


class RecordingEngine:
    """A Publisher. `finish` stands for requests that finish."""

    def __init__(self, max_corpora: int = 8) -> None:
        self.corpora: dict[Namespace, dict[str, list[Segment]]] = {}
        self.shared: dict[Key, History] = {}
        self.unshared: set[str] = set()  # ids of open requests
        self.models: dict[Namespace, bytes] = {}  # of those that learned something
        self._max_corpora = max_corpora

    def publish_corpus(self, namespace: Namespace, name: str, segments: Sequence[Segment]) -> None:
        of_namespace = self.corpora.setdefault(namespace, {})
        if name not in of_namespace and len(of_namespace) == self._max_corpora:
            raise Full(f"{namespace} has {self._max_corpora} corpora")
        of_namespace[name] = list(segments)

    def withdraw_corpus(self, namespace: Namespace, name: str) -> None:
        self.corpora.get(namespace, {}).pop(name, None)

    def drain_history(self) -> list[HistoryDocuments]:
        drained = []
        for key, history in self.shared.items():
            for generation in sorted({number for number, _ in history.undrained}):
                documents = [document for number, document in history.undrained if number == generation]
                drained.append(columns(*key, generation, documents))
            history.undrained.clear()
        return drained

    def histories(self) -> list[HistoryState]:
        return [
            HistoryState(
                namespace=namespace,
                group=group,
                head_tokens=sum(len(document.tokens) for document in history.head),
                head_bytes=30 * sum(len(document.tokens) for document in history.head),
                frozen_tokens=sum(len(document.tokens) for document in history.frozen or ()),
                generation=history.generation,
                segments=len(history.segments),
                oldest=min((document.time for document in history.head), default=0),
            )
            for (namespace, group), history in self.shared.items()
        ]

    def freeze_history(self, namespace: Namespace, group: str) -> HistoryDocuments | None:
        history = self.shared[namespace, group]
        if history.frozen is not None or not history.head:
            return None
        history.frozen, history.head = history.head, []
        history.generation += 1
        return columns(namespace, group, history.generation - 1, history.frozen)

    def publish_history(
        self, namespace: Namespace, group: str, segments: Sequence[Segment], *, drop_frozen: bool
    ) -> None:
        history = self._history(namespace, group)
        history.segments = list(segments)
        if drop_frozen:
            history.frozen = None

    def restore_history(self, documents: HistoryDocuments) -> None:
        history = self._history(documents.namespace, documents.group)
        history.generation = max(history.generation, documents.generation)
        history.head += rows(documents)

    def settle(self, timeout: float) -> bool:
        return True

    def forget_requests(self, owner: Namespace, group: str | None, request_ids: Sequence[str]) -> set[str]:
        found = self.unshared & set(request_ids)
        self.unshared -= found
        return found

    def lessons(self) -> dict[Namespace, int]:
        return {namespace: native.Model.load(saved).lessons for namespace, saved in self.models.items()}

    def learned(self, namespace: Namespace) -> bytes:
        return self.models.get(namespace, b"")

    def restore_learned(self, namespace: Namespace, saved: bytes) -> None:
        self.models[namespace] = native.Model.load(saved).save()

    def forget_learned(self, owner: Namespace) -> None:
        self.models = {namespace: saved for namespace, saved in self.models.items() if not owner.covers(namespace)}

    def teach(self, namespace: Namespace, lessons: int) -> bytes:
        """A namespace that had so many lessons; returns its model."""
        start = native.Model()
        self.models[namespace] = native.Model(
            hits=np.minimum(start.hits + lessons / 1000, start.trials),
            trials=start.trials,
            agreement=start.agreement,
            standing=start.standing,
            correction=start.correction,
            lessons=lessons,
        ).save()
        return self.models[namespace]

    def finish(self, namespace: Namespace, tokens: list[int], label: str = "", time: int = 0, group: str = "") -> None:
        history = self._history(namespace, group)
        document = Document(tokens, label, time)
        history.head.append(document)
        history.undrained.append((history.generation, document))

    def corpus(self, namespace: Namespace, name: str) -> Texts:
        """What drafts would read of it, document by document."""
        return [text for segment in self.corpora[namespace][name] for text in texts(segment)]

    def history(self, namespace: Namespace, group: str = "") -> Texts:
        history = self._history(namespace, group)
        sealed = [text for segment in history.segments for text in texts(segment)]
        return sealed + [document.tokens for document in (*(history.frozen or ()), *history.head)]

    def _history(self, namespace: Namespace, group: str) -> History:
        return self.shared.setdefault((namespace, group), History())


def columns(namespace: Namespace, group: str, generation: int, documents: Sequence[Document]) -> HistoryDocuments:
    return HistoryDocuments(
        namespace=namespace,
        group=group,
        generation=generation,
        token_ids=np.array([token for document in documents for token in document.tokens], np.int32),
        document_ends=np.cumsum([len(document.tokens) for document in documents], dtype=np.int64),
        labels=[document.label for document in documents],
        times=np.array([document.time for document in documents], np.int64),
    )


def rows(documents: HistoryDocuments) -> list[Document]:
    parts = split(documents.token_ids.tolist(), documents.document_ends.tolist())
    return [
        Document(tokens, label, time)
        for tokens, label, time in zip(parts, documents.labels, documents.times.tolist(), strict=True)
    ]


def texts(segment: Segment) -> Texts:
    return split(segment.token_ids().tolist(), segment.document_ends().tolist())


def split(tokens: list[int], ends: list[int]) -> Texts:
    return [tokens[start:end] for start, end in zip([0, *ends], ends, strict=False)]
