"""Files packed with gzip or zstd, unpacked as they are read."""

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from typing import IO, cast

from draftd.ingest.problem import IngestError, TooLarge
from draftd.ingest.readers.limits import BYTES_A_TOKEN, ReadLimits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BUFFER = 1 << 18  # bytes
MOST_WINDOW = 27  # log2 of the bytes that a zstd file may make its reader remember: what `zstd --long` writes


def unpacked(name: str, file: IO[bytes], limits: ReadLimits) -> tuple[str, IO[bytes]]:
    """The name without .gz or .zst and the stream of what is packed; for other names both as they are."""
    stem, _, ending = name.rpartition(".")
    unpack = _UNPACK.get(ending.lower())
    if unpack is None:
        return name, file
    packed: io.RawIOBase = _Unpacked(unpack(file), limits.unpacked_bytes)
    return stem, io.BufferedReader(packed, BUFFER)


class _Unpacked(io.RawIOBase):
    """What a packed stream holds, up to a limit, above which it is a bomb. Reading raises IngestError."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._most = most
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        try:
            content = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
            raise IngestError(f"the compressed file is damaged: {error}") from None
        self._read += len(content)
        if self._read > self._most:
            raise TooLarge(
                f"the compressed file holds more than {self._most} bytes: {BYTES_A_TOKEN} are taken for each token "
                "of corpora.max_tokens"
            )
        buffer[: len(content)] = content
        return len(content)


def _gunzip(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="rb"))


def _unzstd(file: IO[bytes]) -> IO[bytes]:
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: MOST_WINDOW}
    return cast(IO[bytes], zstd.ZstdFile(file, options=options))


_UNPACK: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {"gz": _gunzip, "zst": _unzstd}
