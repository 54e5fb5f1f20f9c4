"""A file that only grows: frames of bytes, each there whole or not at all.

The file begins with a magic of 8 bytes. A frame is its payload's length (u32), the first 8 bytes of the sha256 of
length and payload, and the payload, which is not empty. Numbers are little-endian.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from draftd.observe import facts
from draftd.storage.files import sync_folder, write_file

MAGIC = b"draftdJ1"
_HEAD = struct.Struct("<I8s")


class Journal:
    """Open for appending. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Goes on behind what is there. The folder is not synced."""
        self.path = path
        self._file = path.open("ab", buffering=0)
        try:
            self.end = self._file.tell()
            if self.end < len(MAGIC):
                self.cut(0)
                self._write(MAGIC)
        except BaseException:
            self._file.close()
            raise

    def append(self, payload: bytes) -> None:
        """Returns when it is on the disk. After an OSError some of it may be: `end` is where to `cut`."""
        self._write(_HEAD.pack(len(payload), _check(payload)) + payload)

    def cut(self, end: int) -> None:
        """Takes away what is behind; on the disk with the next `append`."""
        self._file.truncate(end)
        self.end = end

    def close(self) -> None:
        self._file.close()

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self.end += len(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def journal_of(payloads: Iterable[bytes]) -> bytes:
    """A whole journal with these frames."""
    return MAGIC + b"".join(_HEAD.pack(len(payload), _check(payload)) + payload for payload in payloads)


def read_journal(path: Path, end: int | None = None) -> list[bytes]:
    """The payloads of its whole frames, up to an end."""
    return _frames(path.read_bytes()[:end])[0]


def mend_journal(path: Path, keep_aside: Callable[[Path, str], None]) -> None:
    """At a start: leaves whole frames only. What is torn at the end was never acknowledged; of other damage, a copy is
    kept aside, and the frames behind it stay."""
    content = path.read_bytes()
    payloads, damage = _frames(content)
    if damage is not None:
        keep_aside(path, f"{damage}; the other frames stay")
    whole = journal_of(payloads)
    if whole != content:
        if damage is None and len(whole) < len(content):
            facts.journal_truncated(path, len(whole), len(content))
        write_file(path, whole)
        sync_folder(path.parent)


def _frames(content: bytes) -> tuple[list[bytes], str | None]:
    """The whole frames, and what is damaged but for a torn end."""
    if MAGIC.startswith(content):
        return [], None  # torn when it was made
    damage = None if content.startswith(MAGIC) else "its magic is wrong"
    payloads = []
    at = len(MAGIC)
    while at + _HEAD.size <= len(content):
        length, check = _HEAD.unpack_from(content, at)
        payload = content[at + _HEAD.size : at + _HEAD.size + length]
        whole = 0 < length == len(payload) and check == _check(payload)
        if whole:
            payloads.append(payload)
        elif at + _HEAD.size + length >= len(content) or not any(content[at:]):
            break  # it is the last; zeros are what some file systems have there after a loss of power
        else:
            damage = damage or f"the frame at byte {at} is damaged"
        at += _HEAD.size + length
    return payloads, damage


def _check(payload: bytes) -> bytes:
    return hashlib.sha256(len(payload).to_bytes(4, "little") + payload).digest()[:8]
