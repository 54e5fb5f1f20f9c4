"""What a start does with what it finds."""

import json
from pathlib import Path

import pytest

from draftd.storage import (
    CollectionFolder,
    Manifest,
    Pending,
    Scratch,
    SegmentFile,
    Store,
    VersionError,
    fresh_identity,
    fresh_segment_name,
)
from draftd.storage.manifest import _digest


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


def test_what_is_ours_and_no_manifest_names_is_removed(store: Store) -> None:
    folder = create(store, "a")
    before = {path.name for path in folder.path.iterdir()}
    for name in (fresh_segment_name(), "journal-2", "manifest.json.unfinished"):
        (folder.path / name).write_text("left behind")
    (found,) = store.open()
    assert {path.name for path in found.path.iterdir()} == before
    assert found.journals() == {3: [b"frame"]}


def test_what_is_not_ours_stays(store: Store) -> None:
    folder = create(store, "a")
    (folder.path / "notes").mkdir()
    (folder.path / "README").write_text("mine")
    folder.path.with_name("file").write_text("mine")
    (found,) = store.open()
    found.commit(found.manifest)
    found.clean()
    assert (folder.path / "notes").exists()
    assert (folder.path / "README").exists()
    assert folder.path.with_name("file").exists()


def test_a_collection_without_its_manifest_is_put_aside_whole(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    folder = create(store, "a")
    (folder.path / "manifest.json").unlink()
    names = {path.name for path in folder.path.iterdir()}
    assert store.open() == []
    assert {path.name for path in (store.quarantine / folder.path.name).iterdir()} == names
    assert "manifest.json: is missing" in caplog.text


def test_a_collection_of_another_version_stays_as_it_is(store: Store) -> None:
    folder = create(store, "a")
    content = folder.manifest.model_dump(mode="json") | {"version": 2, "more": "of it"}
    manifest = folder.path / "manifest.json"
    manifest.write_text(json.dumps({"sha256": _digest(content), "manifest": content}))
    files = {path: path.read_bytes() for path in folder.path.iterdir()}
    with pytest.raises(VersionError, match=r"manifest.json: version 2 of the manifest; this draftd reads 1"):
        store.open()
    assert {path: path.read_bytes() for path in folder.path.iterdir()} == files


def test_a_damaged_journal_is_kept_aside_whole(store: Store) -> None:
    folder = create(store, "a")
    folder.append_to_journal(3, b"later")
    journal = folder.path / "journal-3"
    damaged = journal.read_bytes().replace(b"frame", b"fr-me")
    journal.write_bytes(damaged)
    (found,) = store.open()
    assert found.journals() == {3: [b"later"]}
    assert (store.quarantine / f"{folder.path.name}-journal-3").read_bytes() == damaged


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
        identity = fresh_identity()
        with store.all_or_none(Pending([identity]), lambda: None):
            store.create(kept.manifest.model_copy(update={"segments": ()}), {}, identity)
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert [folder.manifest.name for folder in store.open()] == ["kept"]


@pytest.mark.parametrize("content", ["[", "5", "[5]", "[[5], []]", '[["../collections"], []]'])
def test_an_unreadable_list_of_an_import_is_put_aside(content: str, store: Store, tmp_path: Path) -> None:
    create(store, "kept")
    (tmp_path / "pending-import.json").write_text(content)
    assert [folder.manifest.name for folder in store.open()] == ["kept"]
    assert [path.name for path in store.quarantine.iterdir()] == ["pending-import.json"]
