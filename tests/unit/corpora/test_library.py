"""Corpora through the library: loads, removal, deletion."""

import threading
from collections.abc import Sequence

import pytest

from draftd.corpora import Deleted
from draftd.corpora.merging import MOST_SEGMENTS
from draftd.corpora.rebuilding import merge
from draftd.ingest import Ack, IngestError, Mode
from draftd.native import Segment
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE, Shelf, ids, key
from tests.unit.corpora.recording import Full, texts


def test_a_load_is_durable_before_it_is_visible_and_survives(shelf: Shelf) -> None:
    seen: list[tuple[Ack, int]] = []
    published = shelf.engine.publish_corpus

    def publish(namespace: Namespace, name: str, segments: Sequence[Segment]) -> None:
        (manifest,) = shelf.files("manifest.json")
        assert manifest.read_text().count(".segment") == len(segments)
        assert len(shelf.files(".segment")) == len(segments)
        published(namespace, name, segments)

    shelf.engine.publish_corpus = publish  # type: ignore[method-assign]
    loaded = shelf.add({"a": [1, 2, 3], "b": [4]}, on_ack=lambda ack: seen.append((ack, len(shelf.engine.corpora))))
    assert (loaded.documents, loaded.tokens) == (2, 4)
    assert seen == [(Ack.DURABLE, 1), (Ack.VISIBLE, 1)]
    shelf.restart()
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2, 3], [4]]
    assert shelf.library.token_counts(NAMESPACE) == {"docs": 4}


def test_loads_add_up_and_merge_into_few_segments(shelf: Shelf) -> None:
    documents = [{f"{number}": [number, 7]} for number in range(MOST_SEGMENTS + 1)]
    for load in documents:
        shelf.add(load)
    expected = [tokens for load in documents for tokens in load.values()]
    assert shelf.engine.corpus(NAMESPACE, "docs") == expected
    shelf.library._look_after()
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) <= MOST_SEGMENTS
    assert shelf.engine.corpus(NAMESPACE, "docs") == expected
    assert len(shelf.files(".segment")) == len(shelf.engine.corpora[NAMESPACE]["docs"])
    shelf.restart()
    assert shelf.engine.corpus(NAMESPACE, "docs") == expected


def test_creating_needs_an_id_that_is_free(shelf: Shelf) -> None:
    shelf.add({"a": [1]}, mode=Mode.CREATE)
    with pytest.raises(IngestError, match="corpus 'docs' of acme/m exists already; remove it first"):
        shelf.add({"b": [2]}, mode=Mode.CREATE)
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1]]


def test_of_two_loads_that_create_one_goes_on(shelf: Shelf) -> None:
    opened, refused = threading.Event(), threading.Event()
    errors: list[str] = []

    def second() -> None:
        opened.wait()
        try:
            shelf.add({"b": [2]}, mode=Mode.CREATE)
        except IngestError as error:
            errors.append(str(error))
        refused.set()

    def on_progress(_progress: object) -> None:
        opened.set()
        refused.wait()

    other = threading.Thread(target=second)
    other.start()
    shelf.add({"a": [1]}, mode=Mode.CREATE, on_progress=on_progress)
    other.join()
    assert errors == ["corpus 'docs' of acme/m is being loaded by another call"]
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1]]


def test_a_load_that_fails_leaves_nothing(shelf: Shelf) -> None:
    shelf.add({"a": [1]})
    files = shelf.files()
    with pytest.raises(IngestError, match="line 2"):
        shelf.add({"b": [2], "c": [-1]})
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1]]
    assert shelf.files() == files
    assert list((shelf.folder / "incoming").iterdir()) == []


def test_an_engine_that_refuses_leaves_nothing(shelf: Shelf) -> None:
    shelf.engine._max_corpora = 0
    with pytest.raises(Full):
        shelf.add({"a": [1]})
    assert shelf.files() == []
    assert shelf.library.token_counts(NAMESPACE) == {}
    assert shelf.library._workshop.ledger.used() == 0


def test_a_removed_corpus_is_gone_from_drafts_disk_and_figures(shelf: Shelf) -> None:
    shelf.add({"a": [1]})
    shelf.library.remove(key())
    assert shelf.engine.corpora[NAMESPACE] == {}
    assert shelf.files() == []
    assert shelf.library._workshop.ledger.used() == 0
    with pytest.raises(IngestError, match="does not exist"):
        shelf.library.remove(key())
    shelf.restart()
    assert shelf.library.token_counts(NAMESPACE) == {}


def test_a_removal_during_a_merge_wins(shelf: Shelf) -> None:
    for number in range(MOST_SEGMENTS + 1):
        shelf.add({f"{number}": [number]})
    collection = shelf.library._registry.get(key(), None)
    rebuilt = shelf.library._loader.rebuild

    def rebuild(*args: object, **kwargs: object) -> object:
        built = rebuilt(*args, **kwargs)  # type: ignore[arg-type]
        shelf.library.remove(key())
        return built

    shelf.library._loader.rebuild = rebuild  # type: ignore[assignment, method-assign]
    merge(shelf.library._workshop, collection)
    assert shelf.engine.corpora[NAMESPACE] == {}
    assert shelf.files() == []
    assert shelf.library._workshop.ledger.used() == 0


def test_deleted_documents_are_gone_from_drafts_and_disk(shelf: Shelf) -> None:
    shelf.add({"keep": [1, 2], "secret-1": [3, 4, 5]})
    shelf.add({"secret-2": [6], "also": [7]})
    shelf.add({"untouched": [8]})
    untouched = shelf.files(".segment")
    assert b"secret-1" in shelf.bytes_on_disk()
    assert shelf.library.delete(ids("secret-1", "secret-2", "unknown")) == Deleted(2, 4, unmatched=("unknown",))
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2], [7], [8]]
    assert b"secret" not in shelf.bytes_on_disk()
    assert len(set(shelf.files(".segment")) & set(untouched)) == 1, "a segment without them stays"
    shelf.restart()
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2], [7], [8]]


def test_names_that_no_document_had_are_said_in_their_order(shelf: Shelf) -> None:
    shelf.add({"a": [1], "b": [2]})
    shelf.add({"c": [3]})
    assert shelf.library.delete(ids("z", "c", "y", "a", "z")) == Deleted(2, 2, unmatched=("z", "y"))
    assert shelf.library.delete(ids("b", older_than=1)) == Deleted(0, 0, unmatched=("b",))
    assert shelf.library.delete(ids(older_than=1)) == Deleted(0, 0)


def test_what_all_documents_left_is_an_empty_corpus(shelf: Shelf) -> None:
    shelf.add({"a": [1], "b": [2]})
    assert shelf.library.delete(ids("a", "b")) == Deleted(2, 2)
    assert shelf.library.token_counts(NAMESPACE) == {"docs": 0}
    assert shelf.files(".segment") == []
    shelf.restart()
    assert shelf.library.token_counts(NAMESPACE) == {"docs": 0}
    shelf.add({"c": [3]})
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[3]]


def test_deleting_all_of_a_corpus_removes_it(shelf: Shelf) -> None:
    shelf.add({"a": [1], "b": [2, 3]})
    assert shelf.library.delete(ids()) == Deleted(2, 3)
    assert shelf.files() == []


def test_deletion_by_age(shelf: Shelf) -> None:
    shelf.add({"a": [1]})
    assert shelf.library.delete(ids(older_than=1_000_000)) == Deleted(0, 0)
    assert shelf.library.delete(ids(older_than=1 << 40)) == Deleted(1, 1)


def test_deletion_from_an_unknown_corpus_is_an_error(shelf: Shelf) -> None:
    with pytest.raises(IngestError, match="corpus 'docs' of acme/m does not exist"):
        shelf.library.delete(ids("a"))


def test_tenants_have_nothing_in_common(shelf: Shelf) -> None:
    shelf.add({"a": [1]})
    shelf.add({"a": [2]}, tenant="other")
    shelf.library.delete(ids("a"))
    assert texts(shelf.engine.corpora[Namespace("other", "m")]["docs"][0]) == [[2]]
    assert shelf.library.token_counts(Namespace("other", "m")) == {"docs": 1}
