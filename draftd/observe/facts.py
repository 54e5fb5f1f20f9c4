"""What happened, one function per fact: each writes its log line and moves its counter."""

import logging
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge

from draftd.observe.words import counted

_log = logging.getLogger("draftd")

# Counters of facts; the figures of the engine come from it when they are asked for (metrics.py).
REGISTRY = CollectorRegistry()
_LOADS = Counter("draftd_corpus_loads", "Corpora offered, by what became of them", ["outcome"], registry=REGISTRY)
_REMOVALS = Counter("draftd_corpus_removals", "Corpora removed", registry=REGISTRY)
_SEALED = Counter("draftd_history_seals", "Heads of histories made into segments", registry=REGISTRY)
_MERGES = Counter("draftd_segment_merges", "Rebuilds of several segments into one", registry=REGISTRY)
_DELETED = Counter("draftd_deleted_documents", "Documents deleted on request", registry=REGISTRY)
_EXPIRED = Counter("draftd_expired_documents", "Documents of histories past their age or bytes", registry=REGISTRY)
_OVER_LIMIT = Counter("draftd_limits_reached", "Work put off or refused by a limit on bytes", registry=REGISTRY)
_QUARANTINED = Counter("draftd_quarantined", "Damaged collections put aside", registry=REGISTRY)
_TRUNCATED = Counter("draftd_truncated_journals", "Journals cut where they were torn", registry=REGISTRY)
_UNWRITTEN = Counter("draftd_journal_failures", "Flushes that could not be written to a journal", registry=REGISTRY)
_SOURCE_CALLS = Counter(
    "draftd_source_calls", "Calls of draft sources, by what became of them", ["source", "outcome"], registry=REGISTRY
)
_SOURCE_NODES = Counter("draftd_source_nodes", "Nodes that draft sources proposed", ["source"], registry=REGISTRY)
_SOURCE_SECONDS = Counter(
    "draftd_source_seconds", "Time of the calls that were answered", ["source"], registry=REGISTRY
)
_SOURCE_BYTES = Gauge("draftd_source_bytes", "Bytes that draft sources hold", ["source"], registry=REGISTRY)
_STATE_BYTES = Gauge(
    "draftd_hidden_state_bytes", "Bytes of hidden states that no draft source has taken yet", registry=REGISTRY
)
# Shown as 0 until it happens.
for _outcome in ("published", "refused", "failed"):
    _LOADS.labels(_outcome)
_SOURCE_CALLS.labels("ngram", "answered")
_SOURCE_NODES.labels("ngram")
_SOURCE_SECONDS.labels("ngram")
_SOURCE_BYTES.labels("ngram")


def tokenizer_known(tenant: str, model: str, path: Path, fingerprint: str, vocabulary_size: int) -> None:
    _log.info(
        "tokenizer of tenant %s, model %s: %s, %d tokens, fingerprint %s",
        tenant,
        model,
        path,
        vocabulary_size,
        fingerprint,
    )


def tokenizer_changed(what: str, theirs: str, ours: str) -> None:
    _log.warning(
        "%s is of tokenizer %s, and the model's is %s now: only requests that state the former draft from it; "
        "load it anew",
        what,
        theirs,
        ours,
    )


def vocabularies_compared(drafter: str, target: str, shared: int, sizes: tuple[int, int], *, same: bool) -> None:
    _log.info(
        "draft model %s shares %s with %s%s",
        drafter,
        counted(shared, "token"),
        target,
        ": the vocabularies are the same" if same else f", of {sizes[0]} and {sizes[1]}",
    )


def corpus_published(key: str, tokens: int, seconds: float) -> None:
    _LOADS.labels("published").inc()
    _log.info("corpus %s published: %s in %.2f s", key, counted(tokens, "token"), seconds)


def kept_as_changed(key: str, path: Path) -> None:
    _log.warning("corpus %s is not read from %s, for it was loaded or added to by hand; remove it first", key, path)


def corpus_refused(what: str, why: str) -> None:
    _LOADS.labels("refused").inc()
    _log.warning("%s refused: %s", what, why)


def corpus_failed(what: str, error: BaseException) -> None:
    _LOADS.labels("failed").inc()
    _log.error("%s not loaded: %s", what, error)


def corpus_removed(key: str, tokens: int) -> None:
    _REMOVALS.inc()
    _log.info("corpus %s removed: %s", key, counted(tokens, "token"))


def collections_restored(count: int, tokens: int, seconds: float) -> None:
    _log.info("%s restored: %s in %.2f s", counted(count, "collection"), counted(tokens, "token"), seconds)


def history_sealed(key: str, tokens: int, seconds: float) -> None:
    _SEALED.inc()
    _log.info("%s: %s sealed in %.2f s", key, counted(tokens, "token"), seconds)


def segments_merged(key: str, segments: int, tokens: int, seconds: float) -> None:
    _MERGES.inc()
    _log.info(
        "%s: %s merged into one of %s in %.2f s", key, counted(segments, "segment"), counted(tokens, "token"), seconds
    )


def documents_deleted(key: str, documents: int, seconds: float) -> None:
    _DELETED.inc(documents)
    _log.info("%s: %s deleted in %.2f s", key, counted(documents, "document"), seconds)


def documents_expired(key: str, documents: int, why: str) -> None:
    _EXPIRED.inc(documents)
    _log.info("%s: %s expired: %s", key, counted(documents, "document"), why)


def namespace_exported(namespace: str, size: int) -> None:
    _log.info("namespace %s exported: %s", namespace, counted(size, "byte"))


def archive_imported(what: str) -> None:
    _log.info("archive imported: %s", what)


def limit_reached(what: str, why: str) -> None:
    _OVER_LIMIT.inc()
    _log.warning("%s: %s", what, why)


def undrafted(key: str, tokens: int) -> None:
    _log.warning("%s: %s are not drafted from until there is room for them", key, counted(tokens, "token"))


def maintenance_failed(key: str, error: BaseException) -> None:
    _log.error("%s: maintenance failed and is tried again: %s", key, error)


def cleanup_failed(what: str, error: BaseException) -> None:
    _log.error("%s: what is left over can't be removed yet, and is tried again: %s", what, error)


def change_unfinished(key: str, error: BaseException) -> None:
    _log.error("%s: changed, but drafts or files lag behind, and are tried again: %s", key, error)


def quarantined(path: Path, why: str) -> None:
    _QUARANTINED.inc()
    _log.error("damaged, put aside as %s: %s", path, why)


def journal_truncated(path: Path, kept: int, found: int) -> None:
    _TRUNCATED.inc()
    _log.warning("journal %s is torn: the first %d of its %d bytes are kept", path, kept, found)


def journal_failed(key: str, error: BaseException) -> None:
    _UNWRITTEN.inc()
    _log.error("%s: a restart would lose the last outputs, for the journal can't be written: %s", key, error)


def disk_failed(what: str, error: BaseException) -> None:
    _log.error("%s failed: %s", what, error)


def call_failed(what: str, error: BaseException) -> None:
    _log.error("%s failed", what, exc_info=error)


def source_called(
    source: str, outcome: str, nodes: int = 0, seconds: float = 0.0, error: BaseException | None = None
) -> None:
    """`error`: what the source is the reason for; the circuit breaker bounds how often that is logged."""
    _SOURCE_CALLS.labels(source, outcome).inc()
    _SOURCE_NODES.labels(source).inc(nodes)
    _SOURCE_SECONDS.labels(source).inc(seconds)
    if error is not None:
        _log.warning("draft source %s: %s, its drafts are left out: %s", source, outcome, error, exc_info=error)


def source_not_made(namespace: str, error: Exception) -> None:
    _log.error("no draft source for namespace %s: %s", namespace, error)


def states_held(more: int) -> None:
    """`more`: bytes, negative where fewer are held."""
    _STATE_BYTES.inc(more)


def source_holds(source: str, more: int) -> None:
    """Bytes more than before, of one of its instances; less than 0 where it has fewer."""
    _SOURCE_BYTES.labels(source).inc(more)


def draft_text_given_up(error: BaseException) -> None:
    _log.warning(
        "draft model: a text could not be read, and is read anew when it is asked for: %s", error, exc_info=error
    )


def serving(endpoints: dict[str, str]) -> None:
    _log.info("serving %s", ", ".join(f"{name} {endpoint}" for name, endpoint in endpoints.items()))


def stopping(signal_name: str) -> None:
    _log.info("%s: stopping", signal_name)


def stopped() -> None:
    _log.info("stopped")


def ring_failed(error: Exception) -> None:
    why = (isinstance(error, OSError) and error.strerror) or str(error)
    _log.warning("clients of this host go without shared memory, over ZMQ: %s", why.lower())


def ring_ended(why: str) -> None:
    _log.debug("a connection through shared memory ended: %s", why)
