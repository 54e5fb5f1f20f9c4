"""What of a history lies in journals: the documents of heads, in no segment yet, by the generation of their head."""

from itertools import compress

from draftd.corpora.collection import Collection
from draftd.corpora.documents import pack, unpack, without
from draftd.corpora.rebuilding import Gone
from draftd.ingest import Selection
from draftd.wire import HistoryDocuments, Namespace

Key = tuple[Namespace, str]  # the namespace, and the group, "" for its own history


def journalled(key: Key, collection: Collection) -> list[HistoryDocuments]:
    """Oldest first. Raises DamagedError."""
    with collection.lock:
        journals = collection.folder.journals().items()
        return [unpack(*key, generation, payloads) for generation, payloads in journals]


def with_earlier(key: Key, collection: Collection, head: HistoryDocuments) -> HistoryDocuments:
    """A head, and before it what is in the journals of heads before it."""
    earlier = [pack(each) for each in journalled(key, collection) if each.generation < head.generation]
    return unpack(*key, head.generation, [*earlier, pack(head)]) if earlier else head


def delete_from_journals(key: Key, collection: Collection, selection: Selection, last: int) -> Gone:
    """Up to the generation `last`. What heads still hold is kept; what was sealed has no journal any more."""
    gone = Gone()
    with collection.lock:
        for documents in journalled(key, collection):
            if documents.generation <= last:
                kept, left_out = leave_out(documents, selection)
                if left_out.documents:
                    collection.folder.rewrite_journal(documents.generation, [pack(kept)])
                    gone += left_out
    return gone


def leave_out(documents: HistoryDocuments, dropped: Selection | None) -> tuple[HistoryDocuments, Gone]:
    """Those that are not picked, and what is."""
    if dropped is None:
        return documents, Gone()
    picked = dropped.picks(documents.times, documents.labelled)
    kept = without(documents, picked)
    labels = frozenset(compress(documents.labels, picked))
    return kept, Gone(int(picked.sum()), len(documents.token_ids) - len(kept.token_ids), labels)
