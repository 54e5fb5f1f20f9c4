"""The directory of one server: its lock, its unix sockets, and uploads while they are read."""

import fcntl
import os
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from draftd.app.problem import StartError

LOCK = "lock"

# Longest path of a unix socket, without the closing zero byte.
SOCKET_PATH_BYTES = 107


class DataDirectory:
    """Held from entering the context to leaving it; a second server that wants it gets a StartError."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.scratch = self.path / "incoming"
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_strangers()
            self._refuse_strange_files()
            self._lock = self._locked()
            # What a killed server left behind; the lock says that nobody uses it.
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch.mkdir(mode=0o700)
        except OSError as error:
            raise StartError(f"data_dir {self.path}: {(error.strerror or str(error)).lower()}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()

    def endpoint(self, endpoint: str) -> str:
        """An ipc:// or unix: endpoint with its path made absolute; others as they are. Raises StartError."""
        for scheme in ("ipc://", "unix:"):
            if endpoint.startswith(scheme):
                path = self.path / endpoint.removeprefix(scheme)
                if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
                    raise StartError(f"{scheme}{path}: the path of a socket has at most {SOCKET_PATH_BYTES} bytes")
                return f"{scheme}{path}"
        return endpoint

    def _refuse_strangers(self) -> None:
        # Where anyone may write, such as /tmp, somebody else could have made ours first, to read what we put there.
        anyone_may_write = self.path.parent.stat().st_mode & stat.S_IWOTH
        if anyone_may_write and self.path.lstat().st_uid != os.getuid():
            raise StartError(f"data_dir {self.path}: belongs to another user; give your own with --data-dir")

    def _refuse_strange_files(self) -> None:
        # What a start doesn't know in these folders it removes, so that they must be a server's own.
        if not (self.path / LOCK).exists():
            for name in ("collections", "incoming"):
                if (self.path / name).exists():
                    raise StartError(
                        f"data_dir {self.path}: has {name} and no file {LOCK}, so no server made it; "
                        "give another with --data-dir"
                    )

    def _locked(self) -> IO[str]:
        lock = (self.path / LOCK).open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            raise StartError(
                f"data_dir {self.path}: used by the server with process id {holder}; give another with --data-dir"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return lock
