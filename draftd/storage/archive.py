"""Collections as one file, to be moved to another data directory.

The file: a magic of 16 bytes; the version (u32) and the length of the header (u64); the header, a list of manifests as
JSON; then, collection by collection, its segments in the order of the manifest. Behind the header and behind each
segment stand the 32 bytes of its sha256, the header's with everything before it. Numbers are little-endian. There are
no names and no paths: who reads it makes its own.
"""

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from draftd.storage.files import sync_file, sync_folder
from draftd.storage.folder import fresh_segment_name
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


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A collection out of an archive: its files by the names that they have in its folder."""

    manifest: Manifest
    files: dict[str, Path]


def write_archive(collections: Sequence[Packed], into: Bytes) -> None:
    header = json.dumps([packed.manifest.model_dump(mode="json") for packed in collections]).encode()
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header))
    into.write(prefix + header + hashlib.sha256(prefix + header).digest())
    for packed in collections:
        for file in packed.segments:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                into.write(chunk)
            into.write(digest.digest())


def read_archive(path: Path, into: Path) -> list[Unpacked]:
    """Puts the files of its collections into the folder `into`. Raises DamagedError; what lies there then is no use."""
    with path.open("rb") as archive:
        manifests = _read_header(archive)
        lengths = [segment.bytes for manifest in manifests for segment in manifest.segments]
        expected = archive.tell() + sum(lengths) + _DIGEST_BYTES * len(lengths)
        actual = path.stat().st_size
        if actual != expected:
            raise DamagedError(f"the archive should have {expected} bytes, and has {actual}")
        unpacked = [_unpack(archive, manifest, into) for manifest in manifests]
    sync_folder(into)
    return unpacked


def _read_header(archive: BinaryIO) -> list[Manifest]:
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
        return [parse_manifest(content) for content in json.loads(header)]
    except (ValueError, RecursionError, TypeError) as error:
        raise DamagedError(f"the archive's header is no list of collections: {error!r}") from None


def _unpack(archive: BinaryIO, manifest: Manifest, into: Path) -> Unpacked:
    segments = tuple(segment.model_copy(update={"file": fresh_segment_name()}) for segment in manifest.segments)
    for number, segment in enumerate(segments):
        _copy(archive, segment.bytes, into / segment.file, f"{manifest}, segment {number}")
    # What the generations of a history number are heads that stayed behind, and so are configured files.
    renewed = manifest.model_copy(update={"segments": segments, "generation": 0, "source": ""})
    return Unpacked(renewed, {segment.file: into / segment.file for segment in segments})


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
