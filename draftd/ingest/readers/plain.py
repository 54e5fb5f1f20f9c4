"""A stream that is unpacked as it is read, as a file that can be mapped and read in any order."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

CHUNK = 1 << 20  # bytes copied at once


@contextmanager
def plain_file(file: IO[bytes], most: int) -> Iterator[IO[bytes]]:
    """The file itself; of a stream up to `most` bytes, in a file without a name. A mapping outlives the context."""
    try:
        file.fileno()
    except OSError:
        with tempfile.TemporaryFile() as plain:
            while most > 0 and (chunk := file.read(min(most, CHUNK))):
                plain.write(chunk)
                most -= len(chunk)
            plain.seek(0)
            yield plain
    else:
        yield file
