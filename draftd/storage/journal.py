"""A file that only grows: frames of bytes, each there whole or not at all.

The file begins with a magic of 8 bytes. A frame is its payload's length (u32), the first 8 bytes of the sha256 of
length and payload, and the payload, which is not empty. Numbers are little-endian.
"""

import hashlib
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from draftd.observe import facts

MAGIC = b"draftdJ1"
_HEAD = struct.Struct("<I8s")


class Journal:
    """Open for appending. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Goes on behind what is there; `read_journal` must have cut what is torn. The folder is not synced."""
        self.path = path
        self._file = path.open("ab", buffering=0)
        try:
            self._end = self._file.tell()
            if self._end < len(MAGIC):
                self._file.truncate(0)
                self._write(MAGIC, start=0)
        except BaseException:
            self._file.close()
            raise

    def append(self, payload: bytes) -> None:
        """Returns when it is on the disk. After an OSError it is not there, and the journal can be used on."""
        head = _HEAD.pack(len(payload), _check(payload))
        self._write(head + payload, start=self._end)

    def close(self) -> None:
        self._file.close()

    def _write(self, content: bytes, start: int) -> None:
        try:
            left = memoryview(content)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(start)
            raise
        self._end = start + len(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def journal_of(payloads: Iterable[bytes]) -> bytes:
    """A whole journal with these frames."""
    return MAGIC + b"".join(_HEAD.pack(len(payload), _check(payload)) + payload for payload in payloads)


def read_journal(path: Path) -> list[bytes]:
    """The payloads up to the first frame that is not whole; from there on the file is cut."""
    content = path.read_bytes()
    payloads, end = _frames(content)
    if end < len(content):
        facts.journal_truncated(path, end, len(content))
        with path.open("r+b") as file:
            file.truncate(end)
            os.fsync(file.fileno())
    return payloads


def _frames(content: bytes) -> tuple[list[bytes], int]:
    """The whole frames, and where the last one ends."""
    if not content.startswith(MAGIC):
        return [], 0
    payloads = []
    at = len(MAGIC)
    while at + _HEAD.size <= len(content):
        length, check = _HEAD.unpack_from(content, at)
        payload = content[at + _HEAD.size : at + _HEAD.size + length]
        if length == 0 or len(payload) < length or check != _check(payload):
            break
        payloads.append(payload)
        at += _HEAD.size + length
    return payloads, at


def _check(payload: bytes) -> bytes:
    return hashlib.sha256(len(payload).to_bytes(4, "little") + payload).digest()[:8]
