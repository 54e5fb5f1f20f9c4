"""Corpora through the library: loads, removal, deletion, limits, restarts."""

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from draftd.corpora import Deleted, OverLimit
from draftd.corpora.merging import MOST_SEGMENTS, MOST_UNMERGED
from draftd.corpora.rebuilding import merge
from draftd.corpora.segments import Fresh
from draftd.corpora.workshop import _Bench
from draftd.ingest import Ack, Built, IngestError, LoaderError, Mode, Selection
from draftd.native import Segment
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE, Shelf, key
from tests.unit.corpora.recording import Full, texts


def ids(*names: str, **fields: object) -> Selection:
    return Selection.model_validate(
        {"tenant": "acme", "model": "m", "corpus_id": "docs", "document_ids": names or None} | fields
    )


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


SMALL = {"limits": {"namespace_bytes": 1 << 20, "tenant_bytes": 1 << 21, "process_bytes": 1 << 23}}
LARGE = {f"{number}": list(range(1000)) * 5 for number in range(10)}  # 50,000 tokens, of some 4 bytes
LARGER = LARGE | {f"more {number}": list(range(1000)) * 5 for number in range(10)}


@pytest.mark.parametrize("shelf", [SMALL], indirect=True)
def test_no_limit_is_passed_and_what_is_full_says_so(shelf: Shelf) -> None:
    used = []

    def watch(_progress: object) -> None:
        used.append(shelf.library._workshop.ledger.used())

    shelf.add(LARGE, on_progress=watch)
    shelf.add(LARGE, on_progress=watch)
    before = shelf.engine.corpus(NAMESPACE, "docs")
    with pytest.raises(
        OverLimit, match=r"acme/m: .*KiB more than .*KiB in use pass .*limits\.namespace_bytes, 1\.0MiB"
    ):
        shelf.add(LARGER, on_progress=watch)
    assert shelf.engine.corpus(NAMESPACE, "docs") == before
    assert max(used) <= 1 << 23
    held = sum(path.stat().st_size for path in shelf.files(".segment"))
    assert held <= shelf.library._workshop.ledger.used() <= 1 << 20
    shelf.library.remove(key())
    assert shelf.library._workshop.ledger.used() == 0
    shelf.add(LARGE)


LONG_IDS = {f"{number:0250}": [1] for number in range(500)}


@pytest.mark.parametrize("form", ["load", "merge", "deletion", "seal"])
def test_what_is_reserved_covers_segments_that_are_mostly_labels(
    form: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved: list[int] = []
    fresh = _Bench.fresh

    def compare(bench: _Bench, built: Built) -> Fresh | None:
        assert bench.charge is not None
        reserved.append(bench.charge.kept)
        assert bench.charge.building > 2 * 250 * 500
        made = fresh(bench, built)
        assert made is not None
        assert made.segment.memory_size <= reserved[-1]
        return made

    for number in range(0 if form in ("load", "seal") else MOST_SEGMENTS + 1):
        shelf.add({label + str(number) if number else label: tokens for label, tokens in LONG_IDS.items()})
    monkeypatch.setattr(_Bench, "fresh", compare)
    if form == "load":
        shelf.add(LONG_IDS)
    elif form == "merge":
        shelf.library._look_after()
    elif form == "deletion":
        shelf.library.delete(ids(next(iter(LONG_IDS))))
    else:
        for label, tokens in LONG_IDS.items():
            shelf.engine.finish(NAMESPACE, tokens, label)
        shelf.library._keeper.seal_all(NAMESPACE)
    assert reserved


@pytest.mark.parametrize("shelf", [SMALL], indirect=True)
def test_a_merge_without_room_waits(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_SEGMENTS + 1):
        shelf.add({f"{number}": list(range(1000)) * 35})
    with caplog.at_level("WARNING"):
        shelf.library._look_after()
    assert "limits.namespace_bytes" in caplog.text
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) == MOST_SEGMENTS + 1


@pytest.mark.parametrize("shelf", [SMALL], indirect=True)
def test_loads_go_on_for_a_while_without_room_to_merge(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("draftd.corpora.library.MOST_WITHOUT_ROOM", MOST_UNMERGED + 2)
    shelf.library._upkeep.stop()  # which loads wake, and which would merge now and then
    for number in range(MOST_UNMERGED):
        shelf.add({f"{number}": [number] * 2000})
    other = shelf.library._workshop.ledger.charge(Namespace("rival", "m"))
    other.hold(0, building=(8 << 20) - shelf.library._workshop.ledger.used() - 50_000)
    shelf.add({"a": [1]})
    shelf.add({"b": [1]})
    assert "limits.process_bytes" in caplog.text
    with pytest.raises(OverLimit, match="process_bytes"):
        shelf.add({"c": [1]})
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) == MOST_UNMERGED + 2
    other.release()
    shelf.add({"c": [1]})
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) <= MOST_SEGMENTS + 1


def test_a_deletion_needs_no_room(shelf: Shelf) -> None:
    shelf.add({"keep": list(range(1000)) * 200, "secret": [7, 7]})
    shelf.restart(**SMALL)
    ledger = shelf.library._workshop.ledger
    before = ledger.used()
    assert before > (1 << 20) * 2 // 3, "another of its size has no room"
    used = []
    rebuilt = shelf.library._loader.rebuild

    def rebuild(*args: object, **kwargs: object) -> object:
        used.append((ledger.used(), shelf.engine.corpus(NAMESPACE, "docs")))
        return rebuilt(*args, **kwargs)  # type: ignore[arg-type]

    shelf.library._loader.rebuild = rebuild  # type: ignore[assignment, method-assign]
    assert shelf.library.delete(ids("secret")) == Deleted(1, 2)
    assert [texts for _, texts in used] == [[]], "drafts did without it meanwhile"
    assert ledger.used() <= before
    for _ in range(2):
        assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200]
        shelf.restart()
    assert b"secret" not in shelf.bytes_on_disk()


def test_a_deletion_without_room_that_fails_leaves_all_as_it_was(shelf: Shelf) -> None:
    shelf.add({"keep": list(range(1000)) * 200, "secret": [7, 7]})
    shelf.restart(**SMALL)
    before = shelf.library._workshop.ledger.used()

    def fail(*_args: object, **_kwargs: object) -> object:
        raise LoaderError("no")

    shelf.library._loader.rebuild = fail  # type: ignore[assignment, method-assign]
    with pytest.raises(LoaderError):
        shelf.library.delete(ids("secret"))
    assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200, [7, 7]]
    assert shelf.library._workshop.ledger.used() == before


@pytest.mark.parametrize("how", ["a deletion", "the upkeep"])
def test_a_segment_whose_room_was_taken_comes_back(
    how: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("draftd.corpora.upkeep.REST_SECONDS", 0.0)
    shelf.add({"keep": list(range(1000)) * 200, "secret": [7, 7]})
    shelf.restart(**SMALL)
    other = shelf.library._workshop.ledger.charge(NAMESPACE)
    close = _Bench.close

    def fail(*_args: object, **_kwargs: object) -> object:
        raise LoaderError("no")

    def close_and_take_the_room(bench: _Bench) -> None:
        close(bench)
        if bench.charge is not None and shelf.engine.corpus(NAMESPACE, "docs") == []:
            other.hold(1 << 19)

    with monkeypatch.context() as patch:
        patch.setattr(shelf.library._loader, "rebuild", fail)
        patch.setattr(_Bench, "close", close_and_take_the_room)
        with pytest.raises(OverLimit):
            shelf.library.delete(ids("secret"))
    assert shelf.engine.corpus(NAMESPACE, "docs") == []
    shelf.library._look_after()
    assert "corpus 'docs' of acme/m: 200002 tokens are not drafted from until there is room" in caplog.text
    other.release()
    if how == "a deletion":
        shelf.library.delete(ids("secret"))
        assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200]
    else:
        shelf.library._look_after()
        assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200, [7, 7]]
        assert shelf.library._workshop.ledger.used() == shelf.engine.corpora[NAMESPACE]["docs"][0].memory_size


def test_a_start_below_what_is_on_the_disk_says_which_limit(shelf: Shelf) -> None:
    shelf.add({f"{number}": list(range(1000)) * 100 for number in range(4)})
    with pytest.raises(OverLimit, match=r"limits\.namespace_bytes"):
        shelf.restart(**SMALL)


def test_a_damaged_segment_costs_its_corpus_alone(shelf: Shelf) -> None:
    shelf.add({"a": [1]}, "docs")
    shelf.add({"b": [2]}, "other")
    (segment,) = [
        path for path in shelf.files(".segment") if b"other" not in (path.parent / "manifest.json").read_bytes()
    ]
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    shelf.restart()
    assert shelf.library.token_counts(NAMESPACE) == {"other": 1}
    assert [path.name for path in (shelf.folder / "quarantine").iterdir()] == [segment.parent.name]
    shelf.add({"a": [1]}, "docs")


def manifest_beside(segment: Path) -> str:
    return (segment.parent / "manifest.json").read_text()


@pytest.mark.parametrize("how", ["missing", "cut", "another"])
def test_a_segment_that_is_not_the_manifests_is_damage(how: str, shelf: Shelf) -> None:
    shelf.add({"a": [1, 2, 3]}, "docs")
    shelf.add({"b": [2]}, "other")
    first, second = shelf.files(".segment")
    if how == "missing":
        first.unlink()
    elif how == "cut":
        first.write_bytes(first.read_bytes()[:-8])
    else:
        shutil.copy(second, first)
    shelf.restart()
    assert len(shelf.library.token_counts(NAMESPACE)) == 1
    assert len(list((shelf.folder / "quarantine").iterdir())) == 1


def test_of_two_folders_for_one_corpus_one_is_put_aside(shelf: Shelf) -> None:
    shelf.add({"a": [1, 2, 3]})
    (folder,) = (shelf.folder / "collections").iterdir()
    shutil.copytree(folder, folder.with_name("copy"))
    shelf.restart()
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2, 3]]
    assert len(list((shelf.folder / "quarantine").iterdir())) == 1
    assert shelf.library._workshop.ledger.used() == shelf.engine.corpora[NAMESPACE]["docs"][0].memory_size


def test_configured_files_are_read_when_they_changed(shelf: Shelf, tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('{"token_ids": [1, 2]}\n')
    shelf.library.load_configured(key(), file)
    before = shelf.files(".segment")
    shelf.restart()
    shelf.library.load_configured(key(), file)
    assert shelf.files(".segment") == before, "it was not read again"
    file.write_text('{"token_ids": [1, 2, 3]}\n')
    shelf.library.load_configured(key(), file)
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2, 3]]
    shelf.library.remove_configured_except([key()])
    assert shelf.library.token_counts(NAMESPACE) == {"docs": 3}
    shelf.library.remove_configured_except([])
    assert shelf.library.token_counts(NAMESPACE) == {}


def test_a_configured_corpus_that_was_added_to_stays_as_it_is(
    shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('{"token_ids": [1]}\n')
    shelf.library.load_configured(key(), file)
    shelf.add({"a": [2]})
    file.write_text('{"token_ids": [3, 4]}\n')
    shelf.library.load_configured(key(), file)
    assert f"corpus 'docs' of acme/m is not read from {file}, for it was loaded or added to by hand" in caplog.text
    shelf.library.remove_configured_except([])
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1], [2]]


def test_tenants_have_nothing_in_common(shelf: Shelf) -> None:
    shelf.add({"a": [1]})
    shelf.add({"a": [2]}, tenant="other")
    shelf.library.delete(ids("a"))
    assert texts(shelf.engine.corpora[Namespace("other", "m")]["docs"][0]) == [[2]]
    assert shelf.library.token_counts(Namespace("other", "m")) == {"docs": 1}
