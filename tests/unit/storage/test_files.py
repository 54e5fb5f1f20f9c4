"""Journals on a full disk, and manifests that can't be trusted."""

import errno
import json
import os
from pathlib import Path

import pytest

from draftd.storage import CollectionFolder, DamagedError, Manifest, SegmentFile, VersionError, journal
from draftd.storage.journal import journal_of, mend_journal, read_journal
from draftd.storage.manifest import MANIFEST, parse_manifest, read_manifest, write_manifest

SEGMENT = SegmentFile(file="0" * 32 + ".segment", bytes=7, tokens=1, documents=1, oldest=-5, newest=5)
MANIFEST_OF_CORPUS = Manifest(
    kind="corpus", tenant="acme", model="m", adapter="", tokenizers=(None, "f1"), name="docs", segments=(SEGMENT,)
)
HISTORY = Manifest(kind="history", tenant="acme", model="m", adapter="", tokenizers=(None,), name="", generation=3)


def test_a_full_disk_costs_one_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CollectionFolder(tmp_path, HISTORY)
    folder.append_to_journal(3, b"before")
    with monkeypatch.context() as full:
        full.setattr(journal.os, "fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            folder.append_to_journal(3, b"lost")
    folder.append_to_journal(3, b"after")
    assert folder.journals() == {3: [b"before", b"after"]}


def mended(path: Path) -> tuple[list[bytes], list[str]]:
    """What a start finds in a journal, and what it says of what it keeps aside."""
    said: list[str] = []
    mend_journal(path, lambda _, why: said.append(why))
    return read_journal(path), said


def test_damage_amid_a_journal_costs_its_frame_and_is_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(journal_of([b"first", b"second", b"third"]).replace(b"second", b"sec-nd"))
    assert mended(path) == ([b"first", b"third"], ["the frame at byte 25 is damaged; the other frames stay"])
    assert mended(path) == ([b"first", b"third"], [])


def test_a_damaged_magic_costs_no_frame(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"draftdJ2" + journal_of([b"first"])[8:])
    assert mended(path) == ([b"first"], ["its magic is wrong; the other frames stay"])


@pytest.mark.parametrize("tail", [b"\5", b"\5\0\0\0-checks-sec", bytes(100)])
def test_a_torn_end_is_no_damage(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(journal_of([b"first"]) + tail)
    assert mended(path) == ([b"first"], [])
    assert path.read_bytes() == journal_of([b"first"])


def no_space(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST_OF_CORPUS)
    assert read_manifest(tmp_path) == MANIFEST_OF_CORPUS
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text[: len(text) // 2], "is no manifest"),
        (lambda _: "[]", "is no manifest"),
        (lambda _: "[" * 100_000, "is no manifest"),
        (lambda text: text.replace('"acme"', '"acmd"'), "its checksum is wrong"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "its checksum is wrong"),
    ],
)
def test_a_damaged_manifest_says_so(change: object, complaint: str, tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST_OF_CORPUS)
    path = tmp_path / MANIFEST
    assert callable(change)
    path.write_text(change(path.read_text()))
    with pytest.raises(DamagedError, match=f"{MANIFEST}: {complaint}"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"version": 2}, "version 2 of the manifest; this draftd reads 1"),
        ({"version": None}, "version None"),
        ({"kind": "other"}, "kind: "),
        ({"tenant": ""}, "tenant is empty"),
        ({"name": ""}, "is no name"),
        ({"name": "a\nb"}, "is no name"),
        ({"tokenizers": []}, "tokenizers: "),
        ({"kind": "history"}, "tokenizers: a history has one"),
        ({"surprise": 1}, "surprise: "),
        ({"segments": [SEGMENT.model_dump() | {"file": "../../etc/passwd"}]}, "segments.0.file: "),
        ({"segments": [SEGMENT.model_dump() | {"bytes": -1}]}, "segments.0.bytes: "),
        ({"segments": [SEGMENT.model_dump()] * 2}, "a file is named twice"),
    ],
)
def test_a_manifest_that_makes_no_sense_says_where(fields: dict[str, object], complaint: str) -> None:
    content = json.loads(MANIFEST_OF_CORPUS.model_dump_json()) | fields
    with pytest.raises(DamagedError, match=complaint):
        parse_manifest(content)


def test_another_version_is_not_damage() -> None:
    with pytest.raises(VersionError, match="version 2 of the manifest; this draftd reads 1"):
        parse_manifest(json.loads(MANIFEST_OF_CORPUS.model_dump_json()) | {"version": 2})
