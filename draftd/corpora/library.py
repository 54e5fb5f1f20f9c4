"""All corpora and histories of a server: what transports call, and what goes on behind them."""

import time
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from draftd.config import Settings, TokenizerSettings
from draftd.corpora.histories import HistoryKeeper
from draftd.corpora.learned import LearnedKeeper
from draftd.corpora.ledger import Ledger
from draftd.corpora.merging import MOST_UNMERGED, MOST_WITHOUT_ROOM
from draftd.corpora.moving import Imported, export_archive, import_archive
from draftd.corpora.problem import OverLimit
from draftd.corpora.publishing import Publisher
from draftd.corpora.rebuilding import Gone, drop_documents, merge
from draftd.corpora.registry import CorpusRegistry
from draftd.corpora.restoring import Restorer
from draftd.corpora.sources import stamp
from draftd.corpora.tokenizers import fingerprint_of
from draftd.corpora.upkeep import Attempts, Upkeep
from draftd.corpora.workshop import Workshop
from draftd.ingest import (
    Ack,
    Cancellation,
    Cancelled,
    CorpusKey,
    DescribeJob,
    IngestError,
    KnownTokenizer,
    Loaded,
    Loader,
    LoadFile,
    LoadJob,
    LoadRequest,
    Mode,
    Opened,
    Progress,
    Selection,
)
from draftd.observe import facts
from draftd.storage import Bytes, Scratch, Store
from draftd.wire import Namespace


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion found; `unmatched`: names that it was given and that no document had."""

    documents: int
    tokens: int
    unmatched: tuple[str, ...] = ()


class CorpusLibrary:
    """All calls block: they belong on threads other than those of the transports."""

    def __init__(
        self, engine: Publisher, loader: Loader, settings: Settings, data_directory: Path, scratch: Path
    ) -> None:
        """`scratch`: an existing folder below `data_directory` for what is under way; no start finds anything in it."""
        self.scratch = scratch
        self._loader = loader
        self._settings = settings.corpora
        self._tokenizers: tuple[KnownTokenizer, ...] = ()
        self._store = Store(data_directory, Scratch(scratch))
        self._workshop = Workshop(loader, Ledger(settings.limits), self._store.scratch)
        self._registry = CorpusRegistry(engine, self._store)
        self._keeper = HistoryKeeper(
            engine, self._workshop, self._store, settings.history, settings.engine.history_limit
        )
        self._learned = LearnedKeeper(engine, self._keeper, self._store)
        self._restorer = Restorer(self._workshop.ledger, self._registry, self._keeper, self._learned)
        self._attempts = Attempts()
        self._upkeep = Upkeep("upkeep", settings.history.flush_seconds, self._look_after)
        self._flushing = Upkeep("journals", settings.history.flush_seconds, self._flush)

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

    def tokenizer_of(self, tenant: str, model: str) -> KnownTokenizer | None:
        """The first that fits."""
        return next((known for known in self._tokenizers if known.serves(tenant, model)), None)

    def open(self) -> None:
        """Maps what lies on the disk, and begins to look after it.

        Raises OverLimit, OSError, or what the engine raises for a limit."""
        self._restorer.restore_all(self._store, self._tokenizers)
        self._flushing.start()
        self._upkeep.start()

    def close(self) -> None:
        """After the loader and the transports: what finished, and what was learned, is on the disk on return."""
        self._upkeep.stop()
        self._flushing.stop()
        self._keeper.flush()
        self._learned.flush(all_of_it=True)

    def expect_load(self) -> None:
        """A load is about to come."""
        self._loader.prepare()

    def load(
        self,
        request: LoadRequest,
        *,
        on_progress: Callable[[Progress], None],
        on_ack: Callable[[Ack], None],
        cancelled: Cancellation,
    ) -> Loaded:
        """All or nothing. Raises IngestError, OverLimit, LoaderError, Cancelled, or what the engine raises."""
        loaded = self._load(request, on_progress, cancelled, source="")
        # Not before: the engine may refuse to show a new corpus, which is then taken back from the disk.
        on_ack(Ack.DURABLE)
        on_ack(Ack.VISIBLE)
        return loaded

    def load_configured(self, key: CorpusKey, path: Path) -> None:
        """One of the settings, unless it is here already as the file is now. Raises as `load`."""
        tokenizer = fingerprint_of(key.tenant, key.model, self._tokenizers)
        source = stamp(path.absolute(), tokenizer)
        if (collection := self._registry.all().get(key)) is not None:
            manifest = collection.folder.manifest
            if manifest.source == source:
                return
            if not manifest.source:
                facts.kept_as_changed(str(key), path)
                return  # what was added by hand the file can't bring back
        request = LoadRequest(key=key, source=LoadFile(path=path.absolute()), mode=Mode.CREATE)
        self._load(request, _ignore, Cancellation(), source=source)

    def remove_configured_except(self, keys: Container[CorpusKey]) -> None:
        """What came from the settings and is not in them any more."""
        for key, collection in self._registry.all().items():
            if key not in keys and collection.folder.manifest.source:
                self.remove(key)

    def remove(self, key: CorpusKey, tokenizer: str | None = None) -> None:
        """On return no draft reads it, and its files are gone. Raises IngestError when there is none."""
        tokens = self._registry.remove(key, tokenizer)
        facts.corpus_removed(str(key), tokens)

    def delete(self, selection: Selection) -> Deleted:
        """On return no draft reads what is picked, and no file has it. Raises IngestError, OverLimit, LoaderError."""
        started = time.monotonic()
        deleted = self._delete_from_history(selection) if selection.history else self._delete_from_corpus(selection)
        self._store.clear()
        what = f"corpus {selection.corpus_id!r}" if selection.corpus_id is not None else "history"
        place = Namespace(selection.tenant, selection.model, selection.tokenizer, selection.adapter)
        facts.documents_deleted(f"{what} of {place}", deleted.documents, time.monotonic() - started)
        return deleted

    def token_counts(self, owner: Namespace) -> dict[str, int]:
        """By id, those of the tenant's model and adapter; with a tokenizer stated, only those it can read."""
        return self._registry.token_counts(owner)

    def export(self, owner: Namespace, into: Bytes) -> None:
        """The corpora and histories of a tenant's model and adapter as one file; with a tokenizer stated, only its own.

        Heads of histories are sealed first. Raises IngestError if there are none, OverLimit, LoaderError."""
        self._keeper.seal_all(owner)
        collections = [*self._registry.of(owner).values(), *self._keeper.of(owner).values()]
        if not collections:
            raise IngestError(f"namespace {owner} has no corpus and no history")
        export_archive(collections, into)

    def import_(self, archive: Path) -> Imported:
        """All or nothing. Raises IngestError, OverLimit, or what the engine raises for a limit."""
        self._keeper.flush()
        return import_archive(archive, self._store, self._restorer, self._tokenizers, self._workshop.turn)

    def _load(
        self, request: LoadRequest, on_progress: Callable[[Progress], None], cancelled: Cancellation, source: str
    ) -> Loaded:
        started = time.monotonic()
        what = f"corpus {request.key}" if request.key is not None else "posted corpus"
        try:
            with ExitStack() as reserved:

                def begin(opened: Opened) -> None:
                    nonlocal what
                    what = f"corpus {opened.key}"
                    reserved.enter_context(self._registry.reserve(opened, request.mode, source))

                with self._workshop.loaded(self._job(request), begin, on_progress, cancelled) as (opened, fresh):
                    self._merge_if_full(opened.key)
                    self._registry.put(opened, fresh, request.mode, source)
                    tokens, documents = fresh.segment.tokens, fresh.segment.documents
        except (IngestError, OverLimit, Cancelled) as error:
            facts.corpus_refused(what, str(error))
            raise
        except Exception as error:
            facts.corpus_failed(what, error)
            raise
        self._upkeep.wake()
        facts.corpus_published(str(opened.key), tokens, time.monotonic() - started)
        return Loaded(key=opened.key, tokenizers=opened.tokenizers, documents=documents, tokens=tokens)

    def _job(self, request: LoadRequest) -> Callable[[Path], LoadJob]:
        return lambda folder: LoadJob(
            request=request, max_tokens=self._settings.max_tokens, tokenizers=self._tokenizers, result=folder
        )

    def _merge_if_full(self, key: CorpusKey) -> None:
        collection = self._registry.all().get(key)
        if collection is None or len(collection.held) < MOST_UNMERGED:
            return
        try:
            merge(self._workshop, collection)
        except OverLimit as error:
            if len(collection.held) >= MOST_WITHOUT_ROOM:
                raise
            facts.limit_reached(str(collection), str(error))

    def _flush(self) -> None:
        self._keeper.flush()
        self._learned.flush()

    def _delete_from_history(self, selection: Selection) -> Deleted:
        gone = self._keeper.delete(selection)
        if selection.names is None and selection.older_than is None and not selection.group:
            owner = Namespace(selection.tenant, selection.model, selection.tokenizer, selection.adapter)
            self._learned.forget(owner)
        return _deleted(gone, selection)

    def _delete_from_corpus(self, selection: Selection) -> Deleted:
        assert selection.corpus_id is not None
        key = CorpusKey(
            tenant=selection.tenant, model=selection.model, adapter=selection.adapter, corpus_id=selection.corpus_id
        )
        collection = self._registry.get(key, selection.tokenizer)
        if selection.document_ids is None and selection.older_than is None:
            documents, tokens = sum(held.file.documents for held in collection.held), collection.tokens
            self.remove(key, selection.tokenizer)
            return Deleted(documents, tokens)
        return _deleted(drop_documents(self._workshop, collection, selection), selection)

    def _look_after(self) -> None:
        self._keeper.look_after()
        for collection in self._registry.all().values():
            self._attempts.run(str(collection), partial(merge, self._workshop, collection))
        self._attempts.run("cleanup", self._store.clear)


def _deleted(gone: Gone, selection: Selection) -> Deleted:
    unmatched = dict.fromkeys(name for name in selection.names or () if name not in gone.labels)
    return Deleted(gone.documents, gone.tokens, tuple(unmatched))


def _ignore(_progress: Progress) -> None:
    pass
