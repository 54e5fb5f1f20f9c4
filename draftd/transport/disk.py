"""What a caller hears when the data directory's disk fails."""

import errno

_FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskError(RuntimeError):
    """It can't be read or written. The text is one line."""


class DiskFull(DiskError):
    """There is no room on it."""


def in_callers_words(error: Exception) -> Exception:
    """One of the operating system without names of files, which are the operator's; others as they are."""
    if not isinstance(error, OSError):
        return error
    kind = DiskFull if error.errno in _FULL else DiskError
    return kind(f"the data directory failed: {(error.strerror or str(error)).lower()}; the server's log says more")
