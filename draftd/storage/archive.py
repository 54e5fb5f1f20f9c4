"""Collections as one file, to be moved to another data directory.

The file: a magic of 16 bytes; the version (u32) and the length of the header (u64); the header as JSON, a list of
`{"manifest": ..., "journal": bytes}`; then, collection by collection, its segments in the order of the manifest and its
journal, if it has any bytes. Behind the header and behind each file stand the 32 bytes of its sha256, the header's with
everything before it. Numbers are little-endian. There are no names and no paths: who reads it makes its own.
"""

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from draftd.storage.files import sync_file, sync_folder
from draftd.storage.folder import fresh_segment_name, journal_name
from draftd.storage.manifest import Manifest, parse_manifest
from draftd.storage.problem import DamagedError

MAGIC = b"draftd archive\r\n"
VERSION = 1
MOST_HEADER_BYTES = 64 << 20
_PREFIX = struct.Struct("<16sIQ")
_CHUNK = 1 << 20
_DIGEST_BYTES = 32


class Bytes(Protocol):
    """What an archive is written to."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Packed:
    """A collection on its way into an archive: open files, so that their names may go meanwhile."""

    manifest: Manifest
    segments: Sequence[BinaryIO]
    journal: bytes


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A collection out of an archive: its files by the names that they have in its folder."""

    manifest: Manifest
    files: dict[str, Path]


def write_archive(collections: Sequence[Packed], into: Bytes) -> None:
    entries = [
        {"manifest": packed.manifest.model_dump(mode="json"), "journal": len(packed.journal)} for packed in collections
    ]
    header = json.dumps(entries).encode()
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header))
    into.write(prefix + header + hashlib.sha256(prefix + header).digest())
    for packed in collections:
        for file in packed.segments:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                into.write(chunk)
            into.write(digest.digest())
        if packed.journal:
            into.write(packed.journal + hashlib.sha256(packed.journal).digest())


def read_archive(path: Path, into: Path) -> list[Unpacked]:
    """Puts the files of its collections into the folder `into`. Raises DamagedError; what lies there then is no use."""
    with path.open("rb") as archive:
        entries = _read_header(archive)
        expected = archive.tell() + sum(_stored_bytes(manifest, journal) for manifest, journal in entries)
        actual = path.stat().st_size
        if actual != expected:
            raise DamagedError(f"the archive should have {expected} bytes, and has {actual}")
        unpacked = [_unpack(archive, manifest, journal, into) for manifest, journal in entries]
    sync_folder(into)
    return unpacked


def _read_header(archive: BinaryIO) -> list[tuple[Manifest, int]]:
    prefix = archive.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or not prefix.startswith(MAGIC):
        raise DamagedError("this is no archive of draftd")
    _, version, length = _PREFIX.unpack(prefix)
    if version != VERSION:
        raise DamagedError(f"the archive has version {version}; this draftd reads {VERSION}")
    if length > MOST_HEADER_BYTES:
        raise DamagedError(f"the archive's header has {length} bytes; at most {MOST_HEADER_BYTES}")
    header = archive.read(length)
    if archive.read(_DIGEST_BYTES) != hashlib.sha256(prefix + header).digest():
        raise DamagedError("the archive's header is damaged: its checksum is wrong")
    try:
        return [_entry(entry) for entry in json.loads(header)]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise DamagedError(f"the archive's header is no list of collections: {error!r}") from None


def _entry(entry: Any) -> tuple[Manifest, int]:
    manifest, journal = parse_manifest(entry["manifest"]), entry["journal"]
    if type(journal) is not int or journal < 0:
        raise DamagedError(f"the archive's header: journal: {journal!r} is no number of bytes")
    return manifest, journal


def _stored_bytes(manifest: Manifest, journal: int) -> int:
    files = [segment.bytes for segment in manifest.segments] + ([journal] if journal else [])
    return sum(files) + _DIGEST_BYTES * len(files)


def _unpack(archive: BinaryIO, manifest: Manifest, journal: int, into: Path) -> Unpacked:
    segments = [segment.model_copy(update={"file": fresh_segment_name()}) for segment in manifest.segments]
    lengths = {segment.file: segment.bytes for segment in segments}
    if journal:
        lengths[journal_name(manifest.generation)] = journal
    files = {}
    for name, length in lengths.items():
        # Journals of several collections have one name; a segment's is new.
        files[name] = into / fresh_segment_name()
        _copy(archive, length, files[name], f"{manifest}, {name.partition('.')[2] or 'journal'}")
    return Unpacked(manifest.model_copy(update={"segments": tuple(segments)}), files)


def _copy(archive: BinaryIO, length: int, target: Path, what: str) -> None:
    digest = hashlib.sha256()
    with target.open("xb") as file:
        left = length
        while left and (chunk := archive.read(min(left, _CHUNK))):
            digest.update(chunk)
            file.write(chunk)
            left -= len(chunk)
        sync_file(file)
    if archive.read(_DIGEST_BYTES) != digest.digest():
        raise DamagedError(f"the archive is damaged: {what}: its checksum is wrong")
