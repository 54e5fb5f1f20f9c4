"""Shared histories on the disk: what finished is journalled, what became much is sealed, what became old leaves."""

import sys
import threading
import time
from collections.abc import Sequence
from functools import partial

from pydantic import ByteSize

from draftd.config import HistorySettings
from draftd.corpora.collection import Collection
from draftd.corpora.documents import pack, unpack
from draftd.corpora.journals import Key, delete_from_journals, journalled, leave_out, with_earlier
from draftd.corpora.problem import OverLimit
from draftd.corpora.publishing import HistoryView, Publisher
from draftd.corpora.rebuilding import Gone, drop_documents, merge
from draftd.corpora.segments import Held
from draftd.corpora.upkeep import Attempts
from draftd.corpora.workshop import Workshop
from draftd.ingest import LoaderError, Selection
from draftd.observe import facts
from draftd.storage import CollectionFolder, DamagedError, Manifest, Store
from draftd.wire import HistoryDocuments, HistoryState, Namespace

SETTLE_SECONDS = 60.0  # that a deletion waits for the indexing behind the steps
LATE = 0.25  # of max_age: a segment is rebuilt without what is too old no more often than this


class HistoryKeeper:
    """The engine holds the heads; here is what of them is on the disk, and the segments made of them."""

    def __init__(
        self, engine: Publisher, workshop: Workshop, store: Store, settings: HistorySettings, history_limit: int
    ) -> None:
        """`history_limit`: bytes of one history, heads and segments; the engine keeps it too."""
        self._engine = engine
        self._workshop = workshop
        self._store = store
        self._settings = settings
        self._history_limit = history_limit
        self._histories: dict[Key, Collection] = {}
        self._frozen: dict[Key, HistoryDocuments] = {}  # handed out by the engine, and not sealed yet
        self._incomplete: set[Key] = set()  # whose journals lack something
        self._restored: dict[Key, int] = {}  # up to this generation one head may have the documents of several
        self._next_expiry: dict[Key, float] = {}  # of journals; unix seconds
        self._attempts = Attempts()
        self._flushing = threading.Lock()
        self._lock = threading.Lock()  # of the set of histories

    def restore(self, folder: CollectionFolder, held: Sequence[Held]) -> int:
        """Gives the engine what lay on the disk; journals only at a start.

        Raises DamagedError for their frames, or a history that is there already. Returns how many tokens they had."""
        key = key_of(folder.manifest)
        collection = Collection(folder, held, HistoryView(self._engine, *key).show)
        generation = folder.manifest.generation
        journals = {generation: [], **folder.journals()} if generation else folder.journals()
        restored = [unpack(*key, number, payloads) for number, payloads in journals.items()]
        with self._lock:
            if key in self._histories:
                raise DamagedError(f"{folder.manifest} is there already")
            for documents in restored:
                self._engine.restore_history(documents)
            collection.publish()
            self._restored[key] = max(journals, default=0)
            self._histories[key] = collection
        return sum(len(documents.token_ids) for documents in restored)

    def discard(self, key: Key) -> None:
        """Takes back a `restore`; what is on the disk stays."""
        with self._lock:
            collection = self._histories.pop(key)
        self._engine.publish_history(*key, [], drop_frozen=False)
        collection.release()

    def of(self, owner: Namespace) -> dict[Key, Collection]:
        """Those of the tenant's model and adapter; with a tokenizer stated, only its own."""
        with self._lock:
            return {key: collection for key, collection in self._histories.items() if owner.covers(key[0])}

    def own(self, namespace: Namespace) -> Collection:
        """The namespace's own history; it begins to exist on the disk."""
        return self._collection((namespace, ""), 0)

    def flush(self) -> None:
        """What finished before this call is on the disk on return, but for what a log line says."""
        with self._flushing:
            for documents in self._engine.drain_history():
                key = (documents.namespace, documents.group)
                try:
                    self._journal(key, documents)
                except Exception as error:  # noqa: BLE001 - the other histories' documents were drained too
                    self._incomplete.add(key)
                    facts.journal_failed(named(key), error)

    def seal_all(self, owner: Namespace) -> None:
        """Everything that finished is in segments on return. Raises OverLimit, LoaderError."""
        with self._workshop.turn:
            self.flush()
            for key, generation in self._heads(owner).items():
                self._seal_heads(key, generation, None)

    def look_after(self) -> None:
        """One round over all histories: what is due is sealed, what is too old or too much leaves, segments merge."""
        states = self._agree()
        for key, state in states.items():
            self._attempts.run(named(key), partial(self._look_after, key, state))
        if self._settings.max_age > 0:
            for key, collection in self._all().items():
                if key not in states or not (states[key].head_tokens or states[key].frozen_tokens):
                    self._attempts.run(named(key), partial(self._expire_journals, key, collection))

    def delete(self, selection: Selection) -> Gone:
        """On return no draft and no file has what is picked. Among its labels are those of open requests.

        Raises OverLimit, LoaderError."""
        owner = Namespace(selection.tenant, selection.model, selection.tokenizer, selection.adapter)
        with self._workshop.turn:
            forgotten = self._engine.forget_requests(owner, selection.group, selection.request_ids or ())
            # What was closed before is in a head now, where it is found.
            if not self._engine.settle(SETTLE_SECONDS):
                raise LoaderError(f"finished requests were not indexed within {SETTLE_SECONDS:.0f} s; try again")
            self.flush()
            gone = Gone(labels=frozenset(forgotten))
            for key, generation in self._heads(owner).items():
                if selection.group in (None, key[1]):
                    gone += self._delete(key, selection, generation, unshared=bool(forgotten))
        return gone

    def _delete(self, key: Key, selection: Selection, last: int, *, unshared: bool) -> Gone:
        """`last`: the generation of the live head, 0: there is none.

        `unshared`: some was being indexed, and is in no journal."""
        gone = Gone()
        collection = self._collection(key, last)
        if unshared or self._may_be_in_heads(key, collection, selection):
            for sealed in self._seal_heads(key, last, selection):
                gone += leave_out(sealed, selection)[1]
        gone += drop_documents(self._workshop, collection, selection)
        # Those of what finished meanwhile tell what is in the live head, and stay.
        return gone + delete_from_journals(key, collection, selection, last or sys.maxsize)

    def _journal(self, key: Key, documents: HistoryDocuments) -> None:
        collection = self._collection(key, documents.generation)
        with collection.lock:
            # Otherwise they are in a segment already, or were deleted.
            if documents.generation >= collection.folder.manifest.generation:
                collection.folder.append_to_journal(documents.generation, pack(documents))

    def _collection(self, key: Key, generation: int) -> Collection:
        with self._lock:
            collection = self._histories.get(key)
            if collection is None:
                namespace, group = key
                manifest = Manifest(
                    kind="history",
                    tenant=namespace.tenant,
                    model=namespace.model,
                    adapter=namespace.adapter,
                    tokenizers=(namespace.tokenizer,),
                    name=group,
                    generation=generation,
                )
                collection = Collection(self._store.create(manifest), (), HistoryView(self._engine, *key).show)
                self._histories[key] = collection
            return collection

    def _agree(self) -> dict[Key, HistoryState]:
        """What segments the engine dropped to keep engine.history_limit leave the disk: a publishing would show them.

        Nothing else does: heads that it dropped for memory stay in journals. Returns what it holds."""
        with self._workshop.turn:  # so that segments stay as they are meanwhile
            collections = self._all()
            states = {(state.namespace, state.group): state for state in self._engine.histories()}
            for key, state in states.items():
                if key in collections and collections[key].shown:
                    self._attempts.run(named(key), partial(self._let_go, collections[key], state.segments))
        return states

    def _let_go(self, collection: Collection, stay: int) -> None:
        held = [held for held in collection.held if held.segment is not None]
        if gone := held[: len(held) - stay]:
            limit = ByteSize(self._history_limit).human_readable()
            _drop(collection, gone, f"the history had more bytes than engine.history_limit, {limit}")

    def _look_after(self, key: Key, state: HistoryState) -> None:
        now = time.time()
        with self._workshop.turn:
            if key in self._histories:
                self._expire(key, self._histories[key], now)
            if self._is_due(key, state, now):
                self._seal(key, self._too_old(key, now))
            if key in self._histories:
                merge(self._workshop, self._histories[key], self._too_old(key, now))

    def _is_due(self, key: Key, state: HistoryState, now: float) -> bool:
        settings = self._settings
        return (
            key in self._frozen
            or state.head_tokens >= settings.seal_tokens
            or state.head_bytes >= self._history_limit // 4
            or (settings.max_age > 0 and 0 < state.oldest < now - (1 + LATE) * settings.max_age)
        )

    def _seal(self, key: Key, dropped: Selection | None) -> HistoryDocuments | None:
        """Makes a segment of the oldest head, without what is picked; returns all that was in it, None: nothing."""
        if key in self._histories:
            self._histories[key].publish()  # lets go of a frozen head that was sealed, or there would be no other
        if key not in self._frozen:
            head = self._engine.freeze_history(*key)
            if head is None:
                return None
            self._frozen[key] = head  # which is handed out once
        frozen = self._with_dropped(key, self._frozen[key])
        started = time.monotonic()
        kept, _ = leave_out(frozen, dropped)
        collection = self._collection(key, frozen.generation)
        self._make_segment(collection, kept)
        del self._frozen[key]
        facts.history_sealed(named(key), len(kept.token_ids), time.monotonic() - started)
        return frozen

    def _with_dropped(self, key: Key, head: HistoryDocuments) -> HistoryDocuments:
        """And what was in heads before it, which the engine dropped for memory."""
        if key not in self._histories or head.generation <= self._restored.get(key, 0):
            return head
        return with_earlier(key, self._histories[key], head)

    def _make_segment(self, collection: Collection, documents: HistoryDocuments) -> None:
        while True:
            try:
                with self._workshop.sealed(collection.owner, documents) as fresh:
                    generation = max(collection.folder.manifest.generation, documents.generation + 1)
                    collection.add(fresh, generation=generation)
                return
            except OverLimit as error:
                # Its own window moves on; what others hold, or build, is no reason to forget.
                if error.level != "namespace" or error.missing > collection.memory:
                    raise
                _drop(collection, collection.held[:1], str(error))

    def _expire(self, key: Key, collection: Collection, now: float) -> None:
        too_old = self._too_old(key, now)
        if too_old is None:
            return
        while collection.held and collection.held[0].file.newest < now - self._settings.max_age:
            _drop(
                collection, collection.held[:1], f"they are older than history.max_age, {self._settings.max_age:.0f} s"
            )
        if any(held.file.oldest < now - (1 + LATE) * self._settings.max_age for held in collection.held):
            gone = drop_documents(self._workshop, collection, too_old)
            facts.documents_expired(named(key), gone.documents, "they are older than history.max_age")

    def _expire_journals(self, key: Key, collection: Collection) -> None:
        """Of heads that the engine dropped, which will never be sealed."""
        now = time.time()
        if now < self._next_expiry.get(key, 0.0):
            return
        too_old = self._too_old(key, now)
        assert too_old is not None, "only with a history.max_age"
        with self._flushing:
            gone = delete_from_journals(key, collection, too_old, sys.maxsize)
        if gone.documents:
            facts.documents_expired(named(key), gone.documents, "they are older than history.max_age")
        self._next_expiry[key] = now + LATE * self._settings.max_age

    def _all(self) -> dict[Key, Collection]:
        with self._lock:
            return dict(self._histories)

    def _too_old(self, key: Key, now: float) -> Selection | None:
        namespace, group = key
        if self._settings.max_age == 0:
            return None
        return Selection(
            tenant=namespace.tenant,
            model=namespace.model,
            adapter=namespace.adapter,
            tokenizer=namespace.tokenizer,
            history=True,
            group=group,
            older_than=int(now - self._settings.max_age),
        )

    def _may_be_in_heads(self, key: Key, collection: Collection, selection: Selection) -> bool:
        """What is in heads is in the journals too, once it is there whole."""
        if key in self._incomplete or (selection.request_ids is None and selection.older_than is None):
            return True
        return any(selection.picks(each.times, each.labelled).any() for each in journalled(key, collection))

    def _heads(self, owner: Namespace) -> dict[Key, int]:
        """The generations of the live heads of an owner's histories, also of those with nothing on the disk yet."""
        live = {(state.namespace, state.group): state.generation for state in self._engine.histories()}
        return dict.fromkeys(self.of(owner), 0) | {key: number for key, number in live.items() if owner.covers(key[0])}

    def _seal_heads(self, key: Key, last: int, dropped: Selection | None) -> list[HistoryDocuments]:
        """Seals all heads up to the generation `last`; returns what was in them."""
        sealed = []
        while (frozen := self._seal(key, dropped)) is not None:
            sealed.append(frozen)
            if frozen.generation >= last:
                break
        return sealed


def key_of(manifest: Manifest) -> Key:
    return (manifest.namespaces()[0], manifest.name)


def named(key: Key) -> str:
    namespace, group = key
    return f"history {group!r} of {namespace}" if group else f"history of {namespace}"


def _drop(collection: Collection, segments: Sequence[Held], why: str) -> None:
    collection.replace(segments, None)
    facts.documents_expired(str(collection), sum(held.file.documents for held in segments), why)
