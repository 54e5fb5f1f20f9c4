"""What a start does with what it finds."""

from pathlib import Path

import pytest

from draftd.storage import CollectionFolder, Manifest, Scratch, SegmentFile, Store, fresh_segment_name


@pytest.fixture
def store(tmp_path: Path) -> Store:
    scratch = tmp_path / "incoming"
    scratch.mkdir()
    store = Store(tmp_path, Scratch(scratch))
    assert store.open() == []
    return store


def create(store: Store, name: str) -> CollectionFolder:
    """A history with one segment and one journal."""
    file = SegmentFile(file=fresh_segment_name(), bytes=5, tokens=1, documents=1, oldest=0, newest=0)
    (store.scratch.path / "built").write_bytes(b"bytes")
    manifest = Manifest(
        kind="history", tenant="t", model="m", adapter="", tokenizers=(None,), name=name, segments=(file,), generation=3
    )
    folder = store.create(manifest, {file.file: store.scratch.path / "built"})
    folder.append_to_journal(3, b"frame")
    return folder


def test_what_no_manifest_names_is_removed(store: Store) -> None:
    folder = create(store, "a")
    before = {path.name for path in folder.path.iterdir()}
    for name in (fresh_segment_name(), "journal-2", "manifest.json.unfinished", "journal-x"):
        (folder.path / name).write_text("left behind")
    unfinished = folder.path.with_name("unfinished")
    unfinished.mkdir()
    (unfinished / fresh_segment_name()).write_text("no manifest")
    (found,) = store.open()
    assert {path.name for path in found.path.iterdir()} == before
    assert found.journals() == {3: [b"frame"]}
    assert not unfinished.exists()


def test_a_damaged_collection_is_put_aside_whole_and_the_rest_is_there(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = create(store, "bad"), create(store, "good")
    files = sorted(path.name for path in bad.path.iterdir())
    manifest = bad.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("bad", "bat"))
    with caplog.at_level("ERROR"):
        assert [folder.manifest.name for folder in store.open()] == ["good"]
    (aside,) = store.quarantine.iterdir()
    assert sorted(path.name for path in aside.iterdir()) == files
    assert f"damaged, put aside as {aside}: " in caplog.text
    assert "its checksum is wrong" in caplog.text
    assert good.path.exists()
    assert not bad.path.exists()


def test_two_of_one_name_find_room_in_the_quarantine(store: Store) -> None:
    folder = create(store, "a")
    for _ in range(2):
        folder.path.mkdir(exist_ok=True)
        store.put_aside(folder.path, "for the test")
    assert len(list(store.quarantine.iterdir())) == 2


def test_a_removed_collection_leaves_no_file(store: Store) -> None:
    folder = create(store, "a")
    store.remove(folder)
    assert not folder.path.exists()
    store.clear()
    assert list(store.scratch.path.iterdir()) == []


def test_all_or_none_leaves_nothing_after_an_error(store: Store) -> None:
    kept = create(store, "kept")

    def fail() -> None:
        with store.all_or_none(2) as create:
            create(kept.manifest.model_copy(update={"segments": ()}), {})
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert [folder.manifest.name for folder in store.open()] == ["kept"]


def test_an_unreadable_list_of_an_import_is_put_aside(store: Store, tmp_path: Path) -> None:
    create(store, "kept")
    (tmp_path / "pending-import.json").write_text("[")
    assert [folder.manifest.name for folder in store.open()] == ["kept"]
    assert [path.name for path in store.quarantine.iterdir()] == ["pending-import.json"]
