"""All collections of a data directory: which there are, how one comes whole, leaves whole, or is put aside."""

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from draftd.observe import facts
from draftd.storage.files import link, make_folder, move, names_in, rename, sync_folder
from draftd.storage.folder import CollectionFolder
from draftd.storage.manifest import Manifest, write_manifest
from draftd.storage.pending import Pending, PendingFile
from draftd.storage.problem import DamagedError, VersionError
from draftd.storage.scratch import Scratch

PENDING = "pending-import.json"
NO_FILES: Mapping[str, Path] = {}


def fresh_identity() -> str:
    return uuid.uuid4().hex


class Store:
    """`scratch` is of the same file system."""

    def __init__(self, data_directory: Path, scratch: Scratch) -> None:
        self.scratch = scratch
        self.quarantine = data_directory / "quarantine"
        self._root = data_directory / "collections"
        self._pending = PendingFile(data_directory / PENDING)
        self._failed: tuple[Pending, Callable[[], None]] | None = None  # an import that is not rolled back yet
        self._clearing = threading.Lock()

    def open(self) -> list[CollectionFolder]:
        """What a start finds. Damaged collections move to the quarantine. Raises VersionError."""
        if not self._root.exists():
            make_folder(self._root)
            sync_folder(self._root.parent)
        pending = self._read_pending()
        self._roll_back(pending.identities)
        paths = (self._root / name for name in sorted(names_in(self._root)))
        opened = [self._open(path, pending) for path in paths if path.is_dir()]
        self._forget_pending()
        return [folder for folder in opened if folder is not None]

    def create(
        self, manifest: Manifest, built: Mapping[str, Path] = NO_FILES, identity: str | None = None
    ) -> CollectionFolder:
        """A new collection of files in `scratch`, by the names that the manifest gives them.

        It appears whole, and is on the disk once it is synced; after an OSError there is none. `identity`: one that is
        pending."""
        path = self._root / (identity or fresh_identity())
        with self.scratch.folder() as making:
            for name, file in built.items():
                rename(file, making / name)
            write_manifest(making, manifest)
            sync_folder(making)
            rename(making, path)
        return CollectionFolder(path, manifest, unsynced=[self._root])

    def remove(self, folder: CollectionFolder) -> None:
        """It leaves its place whole; `clear` does the rest. After an OSError it is where it was."""
        self.scratch.discard(folder.path)

    def clear(self) -> None:
        """On return nothing is there that was removed, or not brought in. After an OSError: to be called again."""
        with self._clearing:
            if self._failed is not None:
                pending, take_back = self._failed
                take_back()
                self._roll_back(pending.identities)
                self._forget_pending()
                self._failed = None
        self.scratch.clear()

    def put_aside(self, path: Path, why: str) -> None:
        """Into the quarantine, where nothing reads it; a person may."""
        inside = path.parent.parent == self._root  # of a collection's folder
        target = self._place_aside(f"{path.parent.name}-{path.name}" if inside else path.name)
        move(path, target)
        facts.quarantined(target, why)

    def keep_aside(self, path: Path, why: str) -> None:
        """As `put_aside`, and a file that is there stays; what takes its place must be another."""
        target = self._place_aside(f"{path.parent.name}-{path.name}")
        if path.exists():
            link(path, target)
        facts.quarantined(target, why)

    @contextmanager
    def all_or_none(self, pending: Pending, take_back: Callable[[], None]) -> Iterator[None]:
        """Within it, what is pending is brought in by its caller; all of it stays once it is kept, after an error or a
        crash none.

        `take_back`: takes the segments from the collections that were there, as far as they have them; called until it
        succeeds."""
        self.clear()  # there is one list of what is pending
        try:
            self._pending.write(pending)
            yield
        except BaseException:
            if self._pending.exists():
                self._failed = pending, take_back
                self.clear()
            raise

    def keep(self, brought_in: Sequence[CollectionFolder]) -> None:
        """Within `all_or_none`, at its end. It is on the disk once each is synced, from then on."""
        sync_folder(self._root)
        self._pending.remove()
        for folder in brought_in:
            folder.unsynced.add(self._pending.path.parent)

    def _forget_pending(self) -> None:
        self._pending.remove()
        sync_folder(self._pending.path.parent)

    def _roll_back(self, identities: Sequence[str]) -> None:
        for identity in identities:
            path = self._root / identity
            if path.exists():
                self.scratch.discard(path)
        self.scratch.clear()

    def _read_pending(self) -> Pending:
        if not self._pending.exists():
            return Pending()
        try:
            return self._pending.read()
        except DamagedError as error:
            self.put_aside(self._pending.path, str(error))
            return Pending()

    def _open(self, path: Path, pending: Pending) -> CollectionFolder | None:
        try:
            return CollectionFolder.open(path, pending.segments, self.keep_aside)
        except VersionError:
            raise
        except DamagedError as error:
            self.put_aside(path, str(error))
        return None

    def _place_aside(self, name: str) -> Path:
        if not self.quarantine.exists():
            make_folder(self.quarantine)
            sync_folder(self.quarantine.parent)
        target = self.quarantine / name
        return target.with_name(f"{name}-{uuid.uuid4().hex}") if target.exists() else target
