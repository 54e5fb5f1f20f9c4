"""What collections have to do with the tokenizers that are configured."""

from collections.abc import Iterable, Sequence

from draftd.ingest import KnownTokenizer
from draftd.observe import facts
from draftd.storage import Manifest
from draftd.wire import Namespace


def fingerprint_of(tenant: str, model: str, tokenizers: Iterable[KnownTokenizer]) -> str | None:
    """Of the first that fits; None: there is none."""
    return next((known.fingerprint for known in tokenizers if known.serves(tenant, model)), None)


def readers(manifest: Manifest, tokenizers: Iterable[KnownTokenizer]) -> Sequence[Namespace]:
    """Where drafts may read a corpus of an earlier start: who states no tokenizer means the one of this start."""
    stated = [tokenizer for tokenizer in manifest.tokenizers if tokenizer is not None]
    known = fingerprint_of(manifest.tenant, manifest.model, tokenizers)
    if known is None or known in stated or len(stated) in (0, len(manifest.tokenizers)):
        return manifest.namespaces()
    facts.tokenizer_changed(str(manifest), " and ".join(stated), known)
    return [namespace for namespace in manifest.namespaces() if namespace.tokenizer is not None]
