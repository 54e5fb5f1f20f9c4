"""Which corpora there are. Loads of one id meet here."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from draftd.corpora.collection import Collection
from draftd.corpora.publishing import CorpusView, Publisher
from draftd.corpora.segments import Fresh, Held
from draftd.ingest import CorpusKey, IngestError, Mode, Opened
from draftd.storage import CollectionFolder, DamagedError, Manifest, Store, fresh_segment_name
from draftd.wire import Namespace


class CorpusRegistry:
    """Threads may call at once. No call waits for a load or a rebuild under way; one that only looks, for nothing."""

    def __init__(self, publisher: Publisher, store: Store) -> None:
        self._publisher = publisher
        self._store = store
        self._corpora: dict[CorpusKey, Collection] = {}
        self._being_created: set[CorpusKey] = set()
        self._lock = threading.Lock()  # of the two
        self._creating = threading.Lock()  # held by who makes a corpus of an id that has none; taken before any other

    def restore(self, folder: CollectionFolder, held: Sequence[Held], readers: Sequence[Namespace]) -> None:
        """Publishes what lay on the disk to namespaces that may read it.

        Raises what the engine raises, or DamagedError for a corpus that is there, or about to be."""
        key = key_of(folder.manifest)
        collection = Collection(folder, held, self._view(key, readers).show)
        with self._creating:
            if key in self._corpora or key in self._being_created:
                raise DamagedError(f"{folder.manifest} is there already")
            collection.publish()
            with self._lock:
                self._corpora[key] = collection

    @contextmanager
    def reserve(self, opened: Opened, mode: Mode, source: str) -> Iterator[None]:
        """Lets one load of several create a corpus; the others are refused. Raises IngestError.

        `source`: of a configured one, which may replace what is there."""
        with self._lock:
            self._refuse(opened, mode, source)
            if mode is Mode.CREATE:
                self._being_created.add(opened.key)
        try:
            yield
        finally:
            with self._lock:
                if mode is Mode.CREATE:
                    self._being_created.discard(opened.key)

    def put(self, opened: Opened, fresh: Fresh, mode: Mode, source: str) -> None:
        """Adds a segment to a corpus, or makes one of it: durable and visible on return. Raises IngestError.

        What comes from a configured `source` replaces what came from there before."""
        while True:
            with self._creating:
                collection = self.all().get(opened.key)
                if collection is None:
                    self._create(opened, fresh, source)
                    return
            if mode is Mode.CREATE and not source:
                raise exists_already(opened.key)
            if source and collection.folder.manifest.tokenizers != opened.tokenizers:
                self.remove(opened.key, None)  # it is of other namespaces
                continue
            with collection.lock:
                change = partial(collection.replace, collection.held) if source else collection.add
                if change(fresh, source=source):
                    collection.publish()
                    return
            # Otherwise it was removed meanwhile, and is among the corpora no more.

    def remove(self, key: CorpusKey, tokenizer: str | None) -> int:
        """On return no draft reads it and nothing of it is on the disk; how many tokens it held. Raises IngestError.

        After an OSError it is there as it was, or gone but for bytes that `Store.clear` removes."""
        collection = self.get(key, tokenizer)
        with collection.lock:
            if collection.removed:
                raise IngestError(f"corpus {key} does not exist")
            tokens = collection.tokens
            self._store.remove(collection.folder)
            collection.removed = True
            try:
                self._view(key, collection.folder.manifest.namespaces()).withdraw()
            finally:
                # Only now: the id must not be published anew before the old one is gone.
                with self._lock:
                    del self._corpora[key]
                collection.release()
        self._store.clear()
        return tokens

    def get(self, key: CorpusKey, tokenizer: str | None) -> Collection:
        """`tokenizer`, if stated, must be one of its own. Raises IngestError."""
        with self._lock:
            collection = self._corpora.get(key)
            if collection is None or tokenizer not in (None, *collection.folder.manifest.tokenizers):
                state = "is still being loaded" if key in self._being_created else "does not exist"
                raise IngestError(f"corpus {key} {state}")
            return collection

    def discard(self, key: CorpusKey) -> None:
        """Takes back a `restore`; what is on the disk stays."""
        with self._lock:
            collection = self._corpora.pop(key)
        with collection.lock:
            collection.removed = True
            self._view(key, collection.folder.manifest.namespaces()).withdraw()
            collection.release()

    def all(self) -> dict[CorpusKey, Collection]:
        with self._lock:
            return dict(self._corpora)

    def token_counts(self, owner: Namespace) -> dict[str, int]:
        """By id, those of the tenant's model and adapter; with a tokenizer stated, only those it can read."""
        return {key.corpus_id: collection.tokens for key, collection in self.of(owner).items()}

    def of(self, owner: Namespace) -> dict[CorpusKey, Collection]:
        return {
            key: collection
            for key, collection in self.all().items()
            if (key.tenant, key.model, key.adapter) == (owner.tenant, owner.model, owner.adapter)
            and owner.tokenizer in (None, *collection.folder.manifest.tokenizers)
        }

    def _refuse(self, opened: Opened, mode: Mode, source: str) -> None:
        if opened.key in self._being_created:
            raise IngestError(f"corpus {opened.key} is being loaded by another call")
        collection = self._corpora.get(opened.key)
        if collection is None or source:
            return
        if mode is Mode.CREATE:
            raise exists_already(opened.key)
        if collection.folder.manifest.tokenizers != opened.tokenizers:
            have, given = (
                " and ".join(tokenizer or "none" for tokenizer in tokenizers)
                for tokenizers in (collection.folder.manifest.tokenizers, opened.tokenizers)
            )
            raise IngestError(f"corpus {opened.key} is of tokenizer {have}; the documents are of {given}")

    def _create(self, opened: Opened, fresh: Fresh, source: str) -> None:
        held = fresh.held_as(fresh_segment_name())
        manifest = Manifest(
            kind="corpus",
            tenant=opened.key.tenant,
            model=opened.key.model,
            adapter=opened.key.adapter,
            tokenizers=opened.tokenizers,
            name=opened.key.corpus_id,
            source=source,
            segments=(held.file,),
        )
        folder = self._store.create(manifest, {held.file.file: fresh.path})
        fresh.adopted = True
        collection = Collection(folder, (held,), self._view(opened.key, opened.namespaces()).show)
        with collection.lock:
            with self._lock:
                self._corpora[opened.key] = collection
            try:
                collection.publish()
            except BaseException:
                self.remove(opened.key, None)
                raise

    def _view(self, key: CorpusKey, namespaces: Sequence[Namespace]) -> CorpusView:
        return CorpusView(self._publisher, namespaces, key.corpus_id)


def key_of(manifest: Manifest) -> CorpusKey:
    return CorpusKey(tenant=manifest.tenant, model=manifest.model, adapter=manifest.adapter, corpus_id=manifest.name)


def exists_already(key: CorpusKey) -> IngestError:
    return IngestError(f"corpus {key} exists already; remove it first")
