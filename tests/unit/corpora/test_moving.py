"""A namespace as one file."""

import io
from contextlib import ExitStack
from pathlib import Path

import pytest

from draftd.corpora import Imported, OverLimit
from draftd.ingest import IngestError
from draftd.storage import Packed, read_archive, write_archive
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE, Shelf, key


@pytest.fixture
def archive(shelf: Shelf, tmp_path: Path) -> Path:
    """Of two corpora and two histories, out of another data directory."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other = Shelf(folder, dict(shelf.settings))
    other.add({"a": [1, 2]}, "docs")
    other.add({"b": [3]}, "docs")
    other.add({"c": [4]}, "more")
    other.add({"x": [9]}, tenant="other")
    other.engine.finish(NAMESPACE, [5], "r1", 50)
    other.engine.finish(NAMESPACE, [6, 6], "r2", 60, group="g")
    into = io.BytesIO()
    other.library.export(NAMESPACE, into)
    assert other.engine.history(NAMESPACE) == [[5]], "an export changes nothing"
    other.stop()
    path = tmp_path / "archive"
    path.write_bytes(into.getvalue())
    return path


def test_what_is_exported_is_imported_and_survives(shelf: Shelf, archive: Path) -> None:
    assert shelf.library.import_(archive) == Imported(corpora=2, histories=2, tokens=7)
    for _ in range(2):
        assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2], [3]]
        assert shelf.engine.corpus(NAMESPACE, "more") == [[4]]
        assert shelf.engine.history(NAMESPACE) == [[5]]
        assert shelf.engine.history(NAMESPACE, "g") == [[6, 6]]
        assert Namespace("other", "m") not in shelf.engine.corpora
        shelf.restart()
    shelf.engine.finish(NAMESPACE, [7], "r3", 70)
    shelf.library._keeper.flush()
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[5], [7]]


def test_a_history_that_is_there_gets_older_segments(shelf: Shelf, archive: Path) -> None:
    shelf.engine.finish(NAMESPACE, [7], "r3", 70)
    shelf.library._keeper.seal_all(NAMESPACE)
    shelf.engine.finish(NAMESPACE, [8], "r4", 80)
    shelf.library._keeper.flush()
    assert shelf.library.import_(archive) == Imported(corpora=2, histories=2, tokens=7)
    for _ in range(2):
        assert shelf.engine.history(NAMESPACE) == [[5], [7], [8]]
        assert shelf.engine.history(NAMESPACE, "g") == [[6, 6]]
        shelf.restart()


def test_an_import_that_fails_takes_back_what_a_history_got(shelf: Shelf, archive: Path) -> None:
    shelf.engine.finish(NAMESPACE, [7], "r3", 70)
    shelf.library._keeper.seal_all(NAMESPACE)
    shelf.engine._max_corpora = 1
    with pytest.raises(Exception, match="has 1 corpora"):
        shelf.library.import_(archive)
    for _ in range(2):
        assert shelf.engine.history(NAMESPACE) == [[7]]
        assert shelf.library.token_counts(NAMESPACE) == {}
        assert not (shelf.folder / "pending-import.json").exists()
        shelf.restart()


def nothing_is_there(shelf: Shelf) -> None:
    assert shelf.engine.corpora.get(NAMESPACE, {}) == {}
    assert shelf.files() == []
    assert shelf.library._workshop.ledger.used() == 0
    assert list((shelf.folder / "incoming").iterdir()) == []


@pytest.mark.parametrize("place", [0, 20, 60, 0.3, 0.6, 0.999])
def test_a_damaged_archive_brings_nothing(place: float, shelf: Shelf, archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    content[int(place * len(content)) if place < 1 else int(place)] ^= 0x40
    archive.write_bytes(content)
    with pytest.raises(IngestError, match="import: "):
        shelf.library.import_(archive)
    nothing_is_there(shelf)


def test_an_engine_that_refuses_the_second_corpus_gets_none(shelf: Shelf, archive: Path) -> None:
    shelf.engine._max_corpora = 1
    with pytest.raises(Exception, match="has 1 corpora"):
        shelf.library.import_(archive)
    nothing_is_there(shelf)


def test_what_exists_is_never_overwritten(shelf: Shelf, archive: Path) -> None:
    shelf.add({"mine": [8]}, "more")
    with pytest.raises(IngestError, match="import: corpus 'more' of acme/m exists already; remove it first"):
        shelf.library.import_(archive)
    assert shelf.engine.corpora[NAMESPACE].keys() == {"more"}
    shelf.library.remove(key("more"))
    shelf.library.import_(archive)


@pytest.mark.parametrize(
    "shelf",
    [{"limits": {"namespace_bytes": 1 << 20, "tenant_bytes": 1 << 20, "process_bytes": 1 << 20}}],
    indirect=True,
)
def test_what_does_not_fit_is_refused_whole(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other = Shelf(folder, {})
    other.add({f"{number}": list(range(1000)) * 100 for number in range(4)}, "large")
    other.add({"a": [1]}, "small")
    with (tmp_path / "archive").open("wb") as file:
        other.library.export(NAMESPACE, file)
    other.stop()
    with pytest.raises(OverLimit, match=r"limits\.namespace_bytes"):
        shelf.library.import_(tmp_path / "archive")
    nothing_is_there(shelf)


def test_a_namespace_without_anything_is_not_exported(shelf: Shelf) -> None:
    with pytest.raises(IngestError, match="namespace acme/m has no corpus and no history"):
        shelf.library.export(NAMESPACE, io.BytesIO())


def repacked(archive: Path, into: Path, **changes: object) -> None:
    """The same archive with other manifests, all of whose checksums are right."""
    into.mkdir()
    unpacked = read_archive(archive, into)
    with ExitStack() as opened, archive.open("wb") as file:
        packed = [
            Packed(
                each.manifest.model_copy(update=changes),
                [opened.enter_context(path.open("rb")) for path in each.files.values()],
            )
            for each in unpacked
            if each.manifest.kind == "corpus"
        ]
        write_archive(packed, file)


def test_what_was_configured_elsewhere_is_not_configured_here(shelf: Shelf, archive: Path, tmp_path: Path) -> None:
    repacked(archive, tmp_path / "unpacked", source="/etc/docs.jsonl: 1 files")
    shelf.library.import_(archive)
    shelf.restart()
    shelf.library.remove_configured_except([])
    assert shelf.engine.corpus(NAMESPACE, "docs") == [[1, 2], [3]]


def test_segments_of_another_tokenizer_than_the_manifests_are_refused(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other = Shelf(folder, dict(shelf.settings))
    other.engine.finish(Namespace("acme", "m", "aaaa"), [5], "r1", 50)
    archive = tmp_path / "archive"
    with archive.open("wb") as file:
        other.library.export(NAMESPACE, file)
    other.stop()
    (tmp_path / "unpacked").mkdir()
    (unpacked,) = read_archive(archive, tmp_path / "unpacked")
    manifest = unpacked.manifest.model_copy(update={"tokenizers": ("bbbb",)})
    (path,) = unpacked.files.values()
    with path.open("rb") as segment, archive.open("wb") as file:
        write_archive([Packed(manifest, [segment])], file)
    with pytest.raises(IngestError, match="is of tokenizer aaaa, its manifest of bbbb"):
        shelf.library.import_(archive)
    nothing_is_there(shelf)


def test_a_collection_of_very_many_segments_is_refused(
    shelf: Shelf, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftd.corpora.moving.MOST_SEGMENTS_IMPORTED", 1)
    with pytest.raises(IngestError, match="import: corpus 'docs' of acme/m has 2 segments; at most 1"):
        shelf.library.import_(archive)
    nothing_is_there(shelf)
