"""Opening a file that a client named: only regular files below configured directories, without a link on the way."""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO

from draftd.ingest.problem import IngestError


def open_below(directories: Sequence[Path], file_path: str) -> IO[bytes]:
    """Opens `file_path`, an absolute path below one of `directories`.

    Every part of the path below the directory is opened from the one above it and must not be a link, so
    nobody can swap a part between the check and the use. Raises IngestError."""
    if not directories:
        raise IngestError("file_path is off: no directory is configured; set corpora.directories")
    path = PurePosixPath(file_path)
    if "\0" in file_path or ".." in path.parts or not path.is_absolute():
        raise IngestError(f"file_path {file_path!r}: should be an absolute path without '..'")
    for directory in directories:
        if path != PurePosixPath(directory) and path.is_relative_to(directory):
            return _open_without_links(directory, path.relative_to(directory), file_path)
    raise IngestError(f"file_path {file_path!r}: lies below none of corpora.directories")


def _open_without_links(directory: Path, below: PurePosixPath, file_path: str) -> IO[bytes]:
    with ExitStack() as opened:
        try:
            here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, here)
            for part in below.parts[:-1]:
                here = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
                opened.callback(os.close, here)
            # Not blocking: opening a pipe would wait for its writer.
            file = os.open(below.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        except OSError as error:
            raise IngestError(f"file_path {file_path!r}: {_why(error)}") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise IngestError(f"file_path {file_path!r}: not a regular file")
        return os.fdopen(file, "rb")


def _why(error: OSError) -> str:
    # O_NOFOLLOW answers ELOOP for a link to a file, and with O_DIRECTORY ENOTDIR for a link to a directory.
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a part of the path is a link or no directory"
    return error.strerror.lower() if error.strerror else str(error)
