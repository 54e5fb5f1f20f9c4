"""All collections of a data directory: which there are, how one comes whole, leaves whole, or is put aside."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from draftd.observe import facts
from draftd.storage.files import link, make_folder, move, names_in, remove_file, rename, sync_folder, write_file
from draftd.storage.folder import CollectionFolder
from draftd.storage.manifest import Manifest, write_manifest
from draftd.storage.problem import DamagedError, VersionError
from draftd.storage.scratch import Scratch

# Names the collections of an import that is under way. While it is there, they do not exist.
PENDING = "pending-import.json"
_IDENTITY = re.compile(r"[0-9a-f]{32}")
NO_FILES: Mapping[str, Path] = {}

Create = Callable[[Manifest, Mapping[str, Path]], CollectionFolder]


class Store:
    """`scratch` is of the same file system."""

    def __init__(self, data_directory: Path, scratch: Scratch) -> None:
        self.scratch = scratch
        self.quarantine = data_directory / "quarantine"
        self._root = data_directory / "collections"
        self._pending = data_directory / PENDING
        self._failed: Sequence[str] = ()  # of an import that is not rolled back yet
        self._clearing = threading.Lock()

    def open(self) -> list[CollectionFolder]:
        """What a start finds. Damaged collections move to the quarantine. Raises VersionError."""
        if not self._root.exists():
            make_folder(self._root)
            sync_folder(self._root.parent)
        self._roll_back_import()
        paths = (self._root / name for name in sorted(names_in(self._root)))
        opened = [self._open(path) for path in paths if path.is_dir()]
        self.scratch.clear()
        return [folder for folder in opened if folder is not None]

    def create(self, manifest: Manifest, built: Mapping[str, Path] = NO_FILES) -> CollectionFolder:
        """A new collection of files in `scratch`, by the names that the manifest gives them.

        It appears whole, and is on the disk once it is synced; after an OSError there is none."""
        return self._create(uuid.uuid4().hex, manifest, built)

    def remove(self, folder: CollectionFolder) -> None:
        """It leaves its place whole; `clear` does the rest. After an OSError it is where it was."""
        self.scratch.discard(folder.path)

    def clear(self) -> None:
        """On return nothing is there that was removed, or not brought in. After an OSError: to be called again."""
        with self._clearing:
            if self._failed:
                self._roll_back(self._failed)
                self._failed = ()
        self.scratch.clear()

    def put_aside(self, path: Path, why: str) -> None:
        """Into the quarantine, where nothing reads it; a person may."""
        target = self._place_aside(path.name)
        move(path, target)
        facts.quarantined(target, why)

    def keep_aside(self, path: Path, why: str) -> None:
        """As `put_aside`, and the file stays; what takes its place must be another."""
        target = self._place_aside(f"{path.parent.name}-{path.name}")
        link(path, target)
        facts.quarantined(target, why)

    @contextmanager
    def all_or_none(self, count: int) -> Iterator[Create]:
        """What is created by so many calls stays if the context is left without an error or a crash.

        It is on the disk once each is synced, from then on."""
        self.clear()  # there is one list of what is pending
        identities = [uuid.uuid4().hex for _ in range(count)]
        created: list[CollectionFolder] = []

        def create(manifest: Manifest, built: Mapping[str, Path]) -> CollectionFolder:
            created.append(self._create(identities[len(created)], manifest, built))
            return created[-1]

        try:
            write_file(self._pending, json.dumps(identities).encode())
            sync_folder(self._pending.parent)
            yield create
            sync_folder(self._root)
            remove_file(self._pending)
        except BaseException:
            self._failed = identities
            self.clear()
            raise
        for folder in created:
            folder.unsynced.add(self._pending.parent)

    def _create(self, identity: str, manifest: Manifest, built: Mapping[str, Path]) -> CollectionFolder:
        path = self._root / identity
        with self.scratch.folder() as making:
            for name, file in built.items():
                rename(file, making / name)
            write_manifest(making, manifest)
            sync_folder(making)
            rename(making, path)
        return CollectionFolder(path, manifest, unsynced=[self._root])

    def _roll_back_import(self) -> None:
        if not self._pending.exists():
            return
        try:
            identities = json.loads(self._pending.read_bytes())
            if not all(_IDENTITY.fullmatch(identity) for identity in identities):
                raise ValueError("names that no import makes")
        except (ValueError, TypeError) as error:
            self.put_aside(self._pending, f"no list of collections: {error}")
        else:
            self._roll_back(identities)

    def _roll_back(self, identities: Sequence[str]) -> None:
        for identity in identities:
            path = self._root / identity
            if path.exists():
                self.scratch.discard(path)
        self.scratch.clear()
        if self._pending.exists():
            remove_file(self._pending)
        sync_folder(self._pending.parent)

    def _open(self, path: Path) -> CollectionFolder | None:
        try:
            return CollectionFolder.open(path, self.keep_aside)
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
