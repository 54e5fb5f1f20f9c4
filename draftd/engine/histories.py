"""The histories of an engine and what was learned beside them, for whoever keeps them."""

from collections.abc import Callable, Sequence

import numpy as np

from draftd import native
from draftd.engine.namespaces import Namespaces
from draftd.wire import HistoryDocuments, HistoryState, Namespace


class Histories:
    """What an Engine can be told and asked of its histories, by the names of their namespaces. Thread-safe.

    A history is the newest head, which grows, a frozen one that is being sealed, and segments. Its heads are numbered
    by generation. `group` is empty for the history of the namespace itself. Without a keeper a history is bounded all
    the same: by engine.history_limit it forgets its oldest segment, or its frozen head when the newest one is full.
    """

    def __init__(self, core: native.Engine, namespaces: Namespaces, clock: Callable[[], float]) -> None:
        self._core = core
        self._namespaces = namespaces
        self._clock = clock

    def drain_history(self) -> list[HistoryDocuments]:
        """The documents that were finished since the last drain, in order; by head, older heads first."""
        return [self._named(documents) for documents in self._core.drain_history()]

    def histories(self) -> list[HistoryState]:
        return [
            HistoryState(
                namespace=self._namespaces.name(state.namespace),
                group=state.group,
                head_tokens=state.head_tokens,
                head_bytes=state.head_bytes,
                frozen_tokens=state.frozen_tokens,
                generation=state.generation,
                segments=state.segments,
                oldest=state.oldest,
            )
            for state in self._core.histories()
        ]

    def freeze_history(self, namespace: Namespace, group: str) -> HistoryDocuments | None:
        """Takes a head to be sealed: all its documents, drained or not. They stay drafted from.

        Mostly the newest head, in whose place one of the next generation begins; but one that engine.history_limit has
        put aside comes first. None while the one taken last is still held, and when there is no text.
        """
        frozen = self._core.freeze_history(self._namespaces.number(namespace), group)
        return self._named(frozen) if frozen else None

    def publish_history(
        self, namespace: Namespace, group: str, segments: Sequence[native.Segment], *, drop_frozen: bool
    ) -> None:
        """Replaces the segments, oldest first, and with `drop_frozen` what was frozen, in one moment.

        Those that engine.history_limit has no room for go at once, the oldest first: `histories` shows how many stay.
        """
        number = self._namespaces.number(namespace)
        self._core.publish_history(number, group, segments, drop_frozen=drop_frozen, now=self._clock())

    def restore_history(self, documents: HistoryDocuments) -> None:
        """Adds what an earlier process drained; the head becomes of that generation, if it is not of a later one.

        Before requests are served: RuntimeError when the head has documents that were not drained. ValueError for
        columns that don't fit together.
        """
        self._core.restore_history(
            namespace=self._namespaces.number(documents.namespace),
            group=documents.group,
            generation=documents.generation,
            token_ids=np.asarray(documents.token_ids, np.int32),
            document_ends=np.asarray(documents.document_ends, np.int64),
            labels=list(documents.labels),
            times=np.asarray(documents.times, np.int64),
            now=self._clock(),
        )

    def forget_requests(self, owner: Namespace, group: str | None, request_ids: Sequence[str]) -> set[str]:
        """Open requests of these ids, and closed ones that are not shared yet, leave nothing behind; whose there are.

        Those of the owner's model and adapter; with a tokenizer stated, only its own; with a group, only those that
        would leave it to that group's history ("": to the namespace's own). What they shared before is in a head or a
        segment, under their ids: freeze and rebuild without it.
        """
        return self._core.forget_requests(self._namespaces.of(owner), group, list(request_ids))

    def lessons(self) -> dict[Namespace, int]:
        """How many lessons the model of each namespace had that learned something; the priors' count too.

        A namespace drafts by the priors until its first lesson, and again after engine.memory_limit took its model.
        """
        return {self._namespaces.name(number): lessons for number, lessons in self._core.lessons()}

    def learned(self, namespace: Namespace) -> bytes:
        """Its model, saved; empty: it learned nothing."""
        return self._core.learned(self._namespaces.number(namespace))

    def restore_learned(self, namespace: Namespace, saved: bytes) -> None:
        """Goes on from what `learned` gave, if anything is to be learned. ValueError for other bytes."""
        self._core.restore_learned(self._namespaces.number(namespace), saved, self._clock())

    def forget_learned(self, owner: Namespace) -> None:
        """Those of the owner's model and adapter, with a tokenizer stated only its own, begin anew."""
        for number in self._namespaces.of(owner):
            self._core.forget_learned(number)

    def _named(self, documents: native.HistoryDocuments) -> HistoryDocuments:
        return HistoryDocuments(
            namespace=self._namespaces.name(documents.namespace),
            group=documents.group,
            generation=documents.generation,
            token_ids=documents.token_ids,
            document_ends=documents.document_ends,
            labels=documents.labels,
            times=documents.times,
        )
