"""Names of namespaces, corpora and tokenizers, and the numbers the core knows them by."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from draftd import native
from draftd.wire import Namespace


class LimitExceeded(Exception):
    """A limit of the settings would be passed; the message holds it and what was asked."""


class UnknownNamespace(LookupError):
    """Nothing is known of a namespace; the message names those that differ in the tokenizer alone."""


class UnknownCorpus(LookupError):
    """A request names a corpus that its namespace does not have; the message names those it has."""


class TokenizerMismatch(Exception):
    """Two fingerprints, or two vocabulary sizes, for one model; the message holds both."""


@dataclass(slots=True)
class _Entry:
    number: int
    corpora: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownTokenizer:
    """The tokenizer of the models that the settings name."""

    tenant: str  # * is any
    model: str
    fingerprint: str
    vocabulary_size: int

    def is_of(self, tenant: str, model: str) -> bool:
        return self.tenant in ("*", tenant) and self.model in ("*", model)


class Namespaces:
    """The one place where a name becomes a number. What gets different numbers never meets in the core."""

    def __init__(self, core: native.Engine, max_corpora: int) -> None:
        self._core = core
        self._max_corpora = max_corpora
        self._entries: dict[Namespace, _Entry] = {}
        self._names: dict[int, Namespace] = {}
        self._tokenizers: list[KnownTokenizer] = []
        self._corpora_published = 0
        self._lock = threading.Lock()

    def number(self, namespace: Namespace) -> int:
        """Its number in the core; a namespace begins to exist when it is first named."""
        with self._lock:
            return self._entry(namespace).number

    def name(self, number: int) -> Namespace:
        with self._lock:
            return self._names[number]

    def of(self, owner: Namespace) -> list[int]:
        """Numbers of those of a tenant's model and adapter; with a tokenizer stated, only its own."""
        with self._lock:
            return [entry.number for namespace, entry in self._entries.items() if owner.covers(namespace)]

    def know_tokenizer(self, tenant: str, model: str, fingerprint: str, vocabulary_size: int) -> None:
        """Requests of that tenant and model ("*": any) state this tokenizer, or none. The first that fits counts."""
        self._tokenizers.append(KnownTokenizer(tenant, model, fingerprint, vocabulary_size))

    def tokenizer_of(self, tenant: str, model: str) -> KnownTokenizer | None:
        """The tokenizer that is known for that tenant's model."""
        return next((tokenizer for tokenizer in self._tokenizers if tokenizer.is_of(tenant, model)), None)

    def check_tokenizer(self, namespace: Namespace, vocabulary_size: int) -> None:
        """Raises TokenizerMismatch when a request states another tokenizer or vocabulary than the model's."""
        known = self.tokenizer_of(namespace.tenant, namespace.model)
        if known is None or namespace.tokenizer is None:
            return
        if known.fingerprint != namespace.tokenizer:
            raise TokenizerMismatch(
                f"model {namespace.model} has tokenizer {known.fingerprint}, the request states {namespace.tokenizer}"
            )
        if vocabulary_size not in (0, known.vocabulary_size):
            raise TokenizerMismatch(
                f"tokenizer {known.fingerprint} has {known.vocabulary_size} ids, the request states {vocabulary_size}"
            )

    def corpora(self, namespace: Namespace, names: Iterable[str]) -> list[int]:
        """Numbers of named corpora. Raises UnknownCorpus."""
        with self._lock:
            return list(_picked(namespace, self._entry(namespace).corpora, names).values())

    def look_up(self, namespace: Namespace, names: Iterable[str] | None) -> tuple[int, dict[str, int]]:
        """Its number, and those of the named corpora, or of all. Raises UnknownNamespace or UnknownCorpus.

        Unlike the other calls, it does not bring a namespace into existence."""
        with self._lock:
            entry = self._entries.get(namespace)
            if entry is None:
                raise UnknownNamespace(self._nothing_known(namespace))
            return entry.number, _picked(namespace, entry.corpora, entry.corpora if names is None else names)

    def publish(self, namespace: Namespace, name: str, segments: Sequence[native.Segment]) -> None:
        """Makes the corpus these segments, whatever it was before. Raises LimitExceeded."""
        with self._lock:
            entry = self._entry(namespace)
            number = entry.corpora.get(name)
            if number is None:
                if len(entry.corpora) >= self._max_corpora:
                    raise LimitExceeded(
                        f"namespace {namespace} has {len(entry.corpora)} corpora, the most allowed "
                        "(engine.max_corpora): remove one first"
                    )
                # Never used again: a request that named a corpus since removed does not read another by chance.
                self._corpora_published += 1
                number = self._corpora_published
            self._core.publish_corpus(entry.number, number, segments)
            entry.corpora[name] = number

    def withdraw(self, namespace: Namespace, name: str) -> None:
        with self._lock:
            entry = self._entry(namespace)
            number = entry.corpora.pop(name, None)
            if number is not None:
                self._core.withdraw_corpus(entry.number, number)

    def _nothing_known(self, namespace: Namespace) -> str:
        problem = f"nothing is known of namespace {namespace}: no request, corpus or history was of it"
        owner = replace(namespace, tokenizer=None)
        others = [other.tokenizer or "none stated" for other in self._entries if owner.covers(other)]
        return f"{problem}; the tokenizers that are known there: {', '.join(others)}" if others else problem

    def _entry(self, namespace: Namespace) -> _Entry:
        entry = self._entries.get(namespace)
        if entry is None:
            entry = self._entries[namespace] = _Entry(self._core.create_namespace())
            self._names[entry.number] = namespace
        return entry


def _picked(namespace: Namespace, corpora: dict[str, int], names: Iterable[str]) -> dict[str, int]:
    """Raises UnknownCorpus."""
    for name in names:
        if name not in corpora:
            have = ", ".join(sorted(corpora)) or "none"
            raise UnknownCorpus(f"no corpus {name!r} in namespace {namespace}; it has: {have}")
    return {name: corpora[name] for name in names}
