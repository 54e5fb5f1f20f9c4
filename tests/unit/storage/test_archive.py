"""Archives: what goes in comes out; what is damaged, or was made to do harm, does not."""

import hashlib
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from draftd.storage import DamagedError, Manifest, Packed, SegmentFile, archive, read_archive, write_archive

CONTENTS = (b"first segment", b"", b"third")
MANIFEST = Manifest(
    kind="history",
    tenant="t",
    model="m",
    adapter="",
    tokenizers=(None,),
    name="",
    generation=4,
    segments=tuple(
        SegmentFile(file=f"{number:032x}.segment", bytes=len(content), tokens=1, documents=1, oldest=0, newest=0)
        for number, content in enumerate(CONTENTS)
    ),
)


@pytest.fixture
def packed() -> bytes:
    into = io.BytesIO()
    write_archive([Packed(MANIFEST, [io.BytesIO(content) for content in CONTENTS])], into)
    return into.getvalue()


def read(content: bytes, tmp_path: Path) -> list[archive.Unpacked]:
    (tmp_path / "archive").write_bytes(content)
    (tmp_path / "into").mkdir(exist_ok=True)
    return read_archive(tmp_path / "archive", tmp_path / "into")


def test_what_goes_in_comes_out_under_new_names(packed: bytes, tmp_path: Path) -> None:
    (unpacked,) = read(packed, tmp_path)
    files = [unpacked.files[segment.file] for segment in unpacked.manifest.segments]
    assert tuple(file.read_bytes() for file in files) == CONTENTS
    assert unpacked.manifest.generation == 0
    assert not {segment.file for segment in MANIFEST.segments} & unpacked.files.keys()
    assert {path.parent for path in files} == {tmp_path / "into"}


def test_a_cut_and_a_damaged_byte_are_found_wherever_they_are(packed: bytes, tmp_path: Path) -> None:
    for size in range(0, len(packed), 5):
        with pytest.raises(DamagedError):
            read(packed[:size], tmp_path)
    for place in range(0, len(packed), 5):
        damaged = bytearray(packed)
        damaged[place] ^= 0x10
        with pytest.raises(DamagedError):
            read(bytes(damaged), tmp_path)


def forged(header: object) -> bytes:
    """An archive with this header, whose checksum is right, and no files."""
    content = json.dumps(header).encode()
    prefix = struct.pack("<16sIQ", archive.MAGIC, archive.VERSION, len(content))
    return prefix + content + hashlib.sha256(prefix + content).digest()


def manifest_with(**fields: object) -> dict[str, object]:
    return json.loads(MANIFEST.model_dump_json()) | {"segments": []} | fields


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (lambda _: b"", "no archive of draftd"),
        (lambda _: b"PK\3\4" + bytes(100), "no archive of draftd"),
        (lambda packed: packed + b"x", "should have .* bytes"),
        (lambda packed: packed[:16] + struct.pack("<I", 2) + packed[20:], "version 2; this draftd reads 1"),
        (lambda packed: packed[:20] + struct.pack("<Q", 1 << 60) + packed[28:], "header has .* bytes; at most"),
        (lambda _: forged(7), "no list of collections"),
        (lambda _: forged([7]), "version None of the manifest"),
        (lambda _: forged([manifest_with(version=9)]), "version 9 of the manifest"),
        (lambda _: forged([manifest_with(tenant="")]), "tenant is empty"),
        (
            lambda _: forged([manifest_with(segments=[segment("/etc/passwd", 3)])]),
            "segments.0.file: ",
        ),
        (
            lambda _: forged([manifest_with(segments=[segment(f"{7:032x}.segment", 1 << 50)])]),
            "should have .* bytes",
        ),
    ],
)
def test_a_foreign_or_hostile_file_is_refused(
    content: Callable[[bytes], bytes], complaint: str, packed: bytes, tmp_path: Path
) -> None:
    with pytest.raises(DamagedError, match=complaint):
        read(content(packed), tmp_path)
    assert list((tmp_path / "into").iterdir()) == []


def segment(file: str, size: int) -> dict[str, object]:
    return {"file": file, "bytes": size, "tokens": 1, "documents": 1, "oldest": 0, "newest": 0}
