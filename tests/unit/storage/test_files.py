"""Journals on a full disk, and manifests that can't be trusted."""

import errno
import json
import os
from pathlib import Path

import pytest

from draftd.storage import DamagedError, Manifest, SegmentFile, journal
from draftd.storage.journal import Journal, read_journal
from draftd.storage.manifest import MANIFEST, parse_manifest, read_manifest, write_manifest

SEGMENT = SegmentFile(file="0" * 32 + ".segment", bytes=7, tokens=1, documents=1, oldest=-5, newest=5)
MANIFEST_OF_CORPUS = Manifest(
    kind="corpus", tenant="acme", model="m", adapter="", tokenizers=(None, "f1"), name="docs", segments=(SEGMENT,)
)


def test_a_full_disk_costs_one_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "journal") as written:
        written.append(b"before")
        with monkeypatch.context() as full:
            full.setattr(journal.os, "fsync", no_space)
            with pytest.raises(OSError, match="No space left"):
                written.append(b"lost")
        written.append(b"after")
    assert read_journal(tmp_path / "journal") == [b"before", b"after"]


def no_space(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST_OF_CORPUS)
    assert read_manifest(tmp_path) == MANIFEST_OF_CORPUS
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text[: len(text) // 2], "no manifest"),
        (lambda _: "[]", "no manifest"),
        (lambda _: "[" * 100_000, "no manifest"),
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
