"""Which corpora there are: ids, token counts, and the namespaces each was published in."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from draftd.ingest import CorpusKey, IngestError
from draftd.native import Index
from draftd.wire import Namespace


class Publisher(Protocol):
    """Where corpora go: the engine."""

    def publish_corpus(self, namespace: Namespace, name: str, index: Index) -> None: ...

    def withdraw_corpus(self, namespace: Namespace, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Published:
    tokens: int
    namespaces: tuple[Namespace, ...]

    def has(self, tokenizer: str | None) -> bool:
        """Not stated: any."""
        return tokenizer is None or any(namespace.tokenizer == tokenizer for namespace in self.namespaces)


class CorpusRegistry:
    """Publishes whole corpora or nothing. Threads may call at once; no call waits for a load under way."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._published: dict[CorpusKey, _Published] = {}
        self._reserved: set[CorpusKey] = set()
        self._lock = threading.Lock()

    def keys(self) -> tuple[CorpusKey, ...]:
        """Of all published corpora."""
        with self._lock:
            return tuple(self._published)

    @contextmanager
    def reserve(self, key: CorpusKey) -> Iterator[None]:
        """Keeps the id for one load, so that of two loads with one id exactly one goes on. Raises IngestError."""
        with self._lock:
            key.refuse_if_in(self._published)
            if key in self._reserved:
                raise IngestError(f"corpus {key} is being loaded by another call")
            self._reserved.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._reserved.discard(key)

    def publish(self, key: CorpusKey, namespaces: Sequence[Namespace], index: Index) -> None:
        """Makes a reserved corpus visible in all of the namespaces, or, when one refuses, in none."""
        done: list[Namespace] = []
        try:
            for namespace in namespaces:
                self._publisher.publish_corpus(namespace, key.corpus_id, index)
                done.append(namespace)
        except BaseException:
            for namespace in done:
                self._publisher.withdraw_corpus(namespace, key.corpus_id)
            raise
        with self._lock:
            self._published[key] = _Published(index.tokens, tuple(namespaces))

    def remove(self, key: CorpusKey, tokenizer: str | None) -> int:
        """Drafts stop reading it; returns how many tokens it held. `tokenizer`, if stated, must be one of its own.

        Raises IngestError."""
        with self._lock:
            published = self._published.get(key)
            if published is None or not published.has(tokenizer):
                state = "is still being loaded" if key in self._reserved else "does not exist"
                raise IngestError(f"corpus {key} {state}")
            del self._published[key]
            # Under the lock: the id must not be published anew before the old one is gone.
            for namespace in published.namespaces:
                self._publisher.withdraw_corpus(namespace, key.corpus_id)
        return published.tokens

    def token_counts(self, owner: Namespace) -> dict[str, int]:
        """By id, those of the tenant's model and adapter; with a tokenizer stated, only those it can read."""
        with self._lock:
            return {
                key.corpus_id: published.tokens
                for key, published in self._published.items()
                if (key.tenant, key.model, key.adapter) == (owner.tenant, owner.model, owner.adapter)
                and published.has(owner.tokenizer)
            }
