"""What happened, one function per fact: each writes its log line and moves its counter."""

import logging
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter

_log = logging.getLogger("draftd")

# Counters of facts; the figures of the engine come from it when they are asked for (metrics.py).
REGISTRY = CollectorRegistry()
_LOADS = Counter("draftd_corpus_loads", "Corpora offered, by what became of them", ["outcome"], registry=REGISTRY)
_REMOVALS = Counter("draftd_corpus_removals", "Corpora removed", registry=REGISTRY)
for _outcome in ("published", "refused", "failed"):
    _LOADS.labels(_outcome)  # shown as 0 until it happens


def tokenizer_known(tenant: str, model: str, path: Path, fingerprint: str, vocabulary_size: int) -> None:
    _log.info(
        "tokenizer of tenant %s, model %s: %s, %d tokens, fingerprint %s",
        tenant,
        model,
        path,
        vocabulary_size,
        fingerprint,
    )


def corpus_published(key: str, tokens: int, seconds: float) -> None:
    _LOADS.labels("published").inc()
    _log.info("corpus %s published: %d tokens in %.2f s", key, tokens, seconds)


def corpus_refused(why: str) -> None:
    _LOADS.labels("refused").inc()
    _log.warning("corpus refused: %s", why)


def corpus_failed(error: BaseException) -> None:
    _LOADS.labels("failed").inc()
    _log.error("corpus not loaded: %s", error)


def corpus_removed(key: str, tokens: int) -> None:
    _REMOVALS.inc()
    _log.info("corpus %s removed: %d tokens", key, tokens)


def request_failed(path: str, error: BaseException) -> None:
    _log.error("HTTP %s failed", path, exc_info=error)


def serving(endpoints: dict[str, str]) -> None:
    _log.info("serving %s", ", ".join(f"{name} {endpoint}" for name, endpoint in endpoints.items()))


def stopping(signal_name: str) -> None:
    _log.info("%s: stopping", signal_name)


def stopped() -> None:
    _log.info("stopped")
