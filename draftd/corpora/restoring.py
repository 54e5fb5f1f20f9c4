"""From what lies on the disk to collections that drafts read: at a start, and of an import."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from draftd.corpora.collection import Collection
from draftd.corpora.histories import HistoryKeeper
from draftd.corpora.histories import key_of as history_key
from draftd.corpora.learned import LearnedKeeper
from draftd.corpora.ledger import Ledger
from draftd.corpora.registry import CorpusRegistry
from draftd.corpora.registry import key_of as corpus_key
from draftd.corpora.segments import Held, map_charged
from draftd.corpora.tokenizers import readers
from draftd.ingest import KnownTokenizer
from draftd.observe import facts
from draftd.observe.words import counted
from draftd.storage import CollectionFolder, DamagedError, Manifest, Store
from draftd.wire import Namespace

MAPPING_THREADS = 4  # every byte of a segment is checked when it is mapped


class Restorer:
    """Puts a folder's collection to where those of its kind are kept."""

    def __init__(self, ledger: Ledger, registry: CorpusRegistry, keeper: HistoryKeeper, learned: LearnedKeeper) -> None:
        self._ledger = ledger
        self._registry = registry
        self._keeper = keeper
        self._learned = learned

    def restore_all(self, store: Store, tokenizers: Sequence[KnownTokenizer]) -> None:
        """At a start, which has these tokenizers. What is damaged is put aside.

        Raises OverLimit, or what the engine raises for a limit."""
        started = time.monotonic()
        tokens = []
        with ThreadPoolExecutor(MAPPING_THREADS, "mapping") as threads:
            mapping = [(folder, threads.submit(_map_good, self._ledger, folder, store)) for folder in store.open()]
            for folder, held in mapping:
                try:
                    tokens.append(self._put(folder, held.result(), tokenizers))
                except DamagedError as error:
                    store.put_aside(folder.path, f"{folder.manifest}: {error}")
        facts.collections_restored(len(tokens), sum(tokens), time.monotonic() - started)

    def restore(self, folder: CollectionFolder) -> int:
        """How many tokens it holds. Raises DamagedError, OverLimit, or what the engine raises."""
        return self._put(folder, _map_all(self._ledger, folder), ())

    def extend(self, collection: Collection, manifest: Manifest, files: Mapping[str, Path]) -> Sequence[Held]:
        """Puts the segments of a manifest before those of a collection that is there. Raises as `restore`."""
        held = _map_files(self._ledger, manifest, files)
        try:
            collection.add_before(held, files)
        except BaseException:
            for each in held:
                each.charge.release()
            raise
        return held

    def _put(self, folder: CollectionFolder, held: Sequence[Held], tokenizers: Sequence[KnownTokenizer]) -> int:
        manifest = folder.manifest
        try:
            if manifest.kind == "corpus":
                self._registry.restore(folder, held, readers(manifest, tokenizers))
                journalled = 0
            else:
                journalled = self._keeper.restore(folder, held)
                self._learned.restore(folder)
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

    def find(self, manifest: Manifest) -> Collection | None:
        """What is there of the same key."""
        owner = Namespace(manifest.tenant, manifest.model, adapter=manifest.adapter)
        if manifest.kind == "corpus":
            return self._registry.of(owner).get(corpus_key(manifest))
        return self._keeper.of(owner).get(history_key(manifest))


def _map_all(ledger: Ledger, folder: CollectionFolder) -> list[Held]:
    return _map_files(ledger, folder.manifest, {file.file: folder.file(file) for file in folder.manifest.segments})


def _map_good(ledger: Ledger, folder: CollectionFolder, store: Store) -> list[Held]:
    """At a start. A history does without its damaged segments, which are put aside; a corpus is there whole or not."""
    manifest = folder.manifest
    if manifest.kind == "corpus":
        return _map_all(ledger, folder)
    held: list[Held] = []
    with ExitStack() as undo:
        for file in manifest.segments:
            path = folder.file(file)
            try:
                (one,) = _map_files(ledger, manifest.model_copy(update={"segments": (file,)}), {file.file: path})
            except DamagedError as error:
                store.keep_aside(path, f"{manifest}: {error}; {counted(file.documents, 'document')} are lost to it")
            else:
                undo.callback(one.charge.release)
                held.append(one)
        if len(held) < len(manifest.segments):
            folder.commit(manifest.model_copy(update={"segments": tuple(each.file for each in held)}))
            folder.clean()
        undo.pop_all()
    return held


def _map_files(ledger: Ledger, manifest: Manifest, files: Mapping[str, Path]) -> list[Held]:
    owner = Namespace(manifest.tenant, manifest.model, adapter=manifest.adapter)
    held: list[Held] = []
    with ExitStack() as undo:
        for file in manifest.segments:
            charge = ledger.charge(owner)
            undo.callback(charge.release)
            segment = map_charged(files[file.file], file, charge)
            if segment.fingerprint not in ("", *manifest.tokenizers):
                stated = " or ".join(tokenizer or "none" for tokenizer in manifest.tokenizers)
                raise DamagedError(f"{file.file} is of tokenizer {segment.fingerprint}, its manifest of {stated}")
            held.append(Held(file, segment, charge))
        undo.pop_all()
    return held
