"""Unix socket files. ZMQ and gRPC would take the path away from a server that still serves it."""

import errno
import os
import socket
import stat
from pathlib import Path

SOCKET_MODE = 0o660  # the owner and its group may connect


def claim(path: Path) -> None:
    """Make `path` free to bind: removes what a dead server left there.

    Raises OSError when a live server has it (EADDRINUSE), when it is no socket (EEXIST), or when there is no such
    directory (ENOENT).
    """
    if not path.parent.is_dir():
        raise OSError(errno.ENOENT, "no such directory", str(path.parent))
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "exists and is no socket", str(path))
    if _answers(path):
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), str(path))
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True
