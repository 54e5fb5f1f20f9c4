"""Where things are under way. No start finds anything in it."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from draftd.observe import facts
from draftd.storage.files import make_folder, remove_tree, rename, sync_folder


class Scratch:
    """`path`: an existing folder of the file system of what is made in it. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._discarded: list[tuple[Path, Path]] = []  # where it is, and the folder it was in
        self._clearing = threading.Lock()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A new one, until the context is left. A folder that can't be removed is a log line, and left to `clear`."""
        folder = self._fresh_path()
        make_folder(folder)
        try:
            yield folder
        finally:
            self._discarded.append((folder, self.path))
            try:
                self.clear()
            except OSError as error:
                facts.cleanup_failed(str(folder), error)

    def discard(self, path: Path) -> None:
        """Takes a folder from its place, whole; `clear` removes it. After an OSError it is where it was."""
        leaving = self._fresh_path()
        rename(path, leaving)
        self._discarded.append((leaving, path.parent))

    def clear(self) -> None:
        """On return nothing that was discarded before is on the disk. After an OSError, some is; to be called again."""
        with self._clearing:
            failed: OSError | None = None
            for path, origin in tuple(self._discarded):
                try:
                    sync_folder(origin)  # or a crash might bring it back, in part
                    remove_tree(path)
                except OSError as error:
                    failed = error
                else:
                    self._discarded.remove((path, origin))
            if failed is not None:
                raise failed

    def _fresh_path(self) -> Path:
        return self.path / uuid.uuid4().hex
