"""Loading a corpus from start to end: columns from the loader process, an index from the columns, published whole."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from draftd.config import CorporaSettings, TokenizerSettings
from draftd.corpora.registry import CorpusRegistry
from draftd.ingest import (
    CorpusKey,
    DescribeJob,
    IngestError,
    KnownTokenizer,
    Loaded,
    Loader,
    LoadFile,
    LoadJob,
    LoadPost,
    TokenColumns,
)
from draftd.native import Index
from draftd.observe import facts
from draftd.wire import Namespace


class CorpusLibrary:
    """All calls block: they belong on threads other than those of the transports."""

    def __init__(self, registry: CorpusRegistry, loader: Loader, settings: CorporaSettings, scratch: Path) -> None:
        """`scratch`: an existing folder for what is under way; nothing in it outlives the call that made it."""
        self.scratch = scratch
        self._registry = registry
        self._loader = loader
        self._settings = settings
        self._tokenizers: tuple[KnownTokenizer, ...] = ()

    def open_tokenizers(self, configured: Sequence[TokenizerSettings]) -> tuple[KnownTokenizer, ...]:
        """Reads them once, to know their fingerprints and that they can be read. Raises IngestError or LoaderError."""
        if not configured:
            return ()
        described = self._loader.describe(DescribeJob(paths=tuple(tokenizer.path for tokenizer in configured)))
        self._tokenizers = tuple(
            KnownTokenizer(
                tenant=tokenizer.tenant,
                model=tokenizer.model,
                path=tokenizer.path,
                fingerprint=fingerprint,
                vocabulary_size=vocabulary_size,
            )
            for tokenizer, (fingerprint, vocabulary_size) in zip(configured, described.tokenizers, strict=True)
        )
        for known in self._tokenizers:
            facts.tokenizer_known(known.tenant, known.model, known.path, known.fingerprint, known.vocabulary_size)
        return self._tokenizers

    def add_posted(self, body: Path) -> Loaded:
        """Adds what a client posted; `body` is a file. Raises IngestError, LoaderError, or what the engine raises."""
        return self._add(LoadPost(body=body, directories=self._settings.directories))

    def add_file(self, key: CorpusKey, path: Path) -> Loaded:
        """Adds a file that the operator named. Raises as `add_posted`."""
        return self._add(LoadFile(key=key, path=path.absolute()))

    def remove(self, key: CorpusKey, tokenizer: str | None = None) -> None:
        """Raises IngestError when there is none."""
        tokens = self._registry.remove(key, tokenizer)
        facts.corpus_removed(str(key), tokens)

    def token_counts(self, owner: Namespace) -> dict[str, int]:
        return self._registry.token_counts(owner)

    def _add(self, source: LoadPost | LoadFile) -> Loaded:
        started = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
                loaded = self._loader.load(
                    LoadJob(
                        source=source,
                        max_tokens=self._settings.max_tokens,
                        tokenizers=self._tokenizers,
                        result=Path(folder),
                        taken=self._registry.keys(),
                    )
                )
                # Another load of the same id may have ended meanwhile, or be at this point too.
                with self._registry.reserve(loaded.key):
                    index = build_index(TokenColumns.saved_in(Path(folder)))
                    self._registry.publish(loaded.key, loaded.namespaces(), index)
        except IngestError as error:
            facts.corpus_refused(str(error))
            raise
        except Exception as error:
            facts.corpus_failed(error)
            raise
        facts.corpus_published(str(loaded.key), loaded.tokens, time.monotonic() - started)
        return loaded


def build_index(columns: TokenColumns) -> Index:
    """A finished index of all documents. Python's lock is free while it is built."""
    index = Index()
    start = 0
    for end in columns.document_ends.tolist():
        index.append(columns.token_ids[start:end])
        index.end_document()
        start = end
    return index
