"""How far reading is, whoever unpacks or parses what is read."""

import os
from contextlib import suppress
from typing import IO


class Position:
    """Of the file that is being read now, and those before it."""

    def __init__(self) -> None:
        self.bytes_total = 0  # 0: nobody knows
        self._file: IO[bytes] | None = None
        self._before = 0  # bytes of the files before this one

    @property
    def bytes_read(self) -> int:
        return self._before + _position(self._file)

    def expect(self, size: int) -> None:
        """So many bytes more are there to be read; 0: nobody knows."""
        self.bytes_total += size

    def watch(self, file: IO[bytes]) -> None:
        """The file that is read from now on."""
        self._before += _position(self._file)
        self._file = file


def _position(file: IO[bytes] | None) -> int:
    # A pipe, or a file that was closed, has none.
    with suppress(OSError, ValueError):
        if file is not None:
            return os.lseek(file.fileno(), 0, os.SEEK_CUR)
    return 0
