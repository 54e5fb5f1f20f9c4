"""From what lies on the disk to collections that drafts read: at a start, and of an import."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from draftd.corpora.collection import Collection
from draftd.corpora.histories import HistoryKeeper
from draftd.corpora.histories import key_of as history_key
from draftd.corpora.ledger import Ledger
from draftd.corpora.registry import CorpusRegistry
from draftd.corpora.registry import key_of as corpus_key
from draftd.corpora.segments import Held, map_charged
from draftd.corpora.tokenizers import readers
from draftd.ingest import KnownTokenizer
from draftd.observe import facts
from draftd.storage import CollectionFolder, DamagedError, Manifest, Store
from draftd.wire import Namespace

MAPPING_THREADS = 4  # every byte of a segment is checked when it is mapped


class Restorer:
    """Puts a folder's collection to where those of its kind are kept."""

    def __init__(self, ledger: Ledger, registry: CorpusRegistry, keeper: HistoryKeeper) -> None:
        self._ledger = ledger
        self._registry = registry
        self._keeper = keeper

    def restore_all(self, store: Store, tokenizers: Sequence[KnownTokenizer]) -> None:
        """At a start, which has these tokenizers. What is damaged is put aside.

        Raises OverLimit, or what the engine raises for a limit."""
        started = time.monotonic()
        tokens = []
        with ThreadPoolExecutor(MAPPING_THREADS, "mapping") as threads:
            mapping = [(folder, threads.submit(_map_all, self._ledger, folder)) for folder in store.open()]
            for folder, held in mapping:
                try:
                    tokens.append(self._put(folder, held.result(), tokenizers))
                except DamagedError as error:
                    store.put_aside(folder.path, f"{folder.manifest}: {error}")
        facts.collections_restored(len(tokens), sum(tokens), time.monotonic() - started)

    def restore(self, folder: CollectionFolder) -> int:
        """How many tokens it holds. Raises DamagedError, OverLimit, or what the engine raises."""
        return self._put(folder, _map_all(self._ledger, folder), ())

    def _put(self, folder: CollectionFolder, held: Sequence[Held], tokenizers: Sequence[KnownTokenizer]) -> int:
        manifest = folder.manifest
        try:
            if self.has(manifest):
                raise DamagedError(f"{folder.path}: {manifest} is there already")
            if manifest.kind == "corpus":
                self._registry.restore(folder, held, readers(manifest, tokenizers))
                journalled = 0
            else:
                journalled = self._keeper.restore(folder, held)
        except BaseException:
            for each in held:
                each.charge.release()
            raise
        return journalled + sum(each.file.tokens for each in held)

    def discard(self, manifest: Manifest) -> None:
        """Takes back a `restore`."""
        if manifest.kind == "corpus":
            self._registry.discard(corpus_key(manifest))
        else:
            self._keeper.discard(history_key(manifest))

    def has(self, manifest: Manifest) -> bool:
        return self._find(manifest) is not None

    def publish(self, manifest: Manifest) -> None:
        """What was restored is on the disk, and what drafts read, on return; if it is still there."""
        if (collection := self._find(manifest)) is not None:
            collection.publish()

    def _find(self, manifest: Manifest) -> Collection | None:
        owner = Namespace(manifest.tenant, manifest.model, adapter=manifest.adapter)
        if manifest.kind == "corpus":
            return self._registry.of(owner).get(corpus_key(manifest))
        return self._keeper.of(owner).get(history_key(manifest))


def _map_all(ledger: Ledger, folder: CollectionFolder) -> list[Held]:
    manifest = folder.manifest
    owner = Namespace(manifest.tenant, manifest.model, adapter=manifest.adapter)
    held: list[Held] = []
    with ExitStack() as undo:
        for file in manifest.segments:
            charge = ledger.charge(owner)
            undo.callback(charge.release)
            segment = map_charged(folder.file(file), file, charge)
            if segment.fingerprint not in ("", *manifest.tokenizers):
                stated = " or ".join(tokenizer or "none" for tokenizer in manifest.tokenizers)
                raise DamagedError(f"{file.file} is of tokenizer {segment.fingerprint}, its manifest of {stated}")
            held.append(Held(file, segment, charge))
        undo.pop_all()
    return held
