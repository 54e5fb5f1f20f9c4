"""All collections of a data directory: which there are, how one comes whole, leaves whole, or is put aside."""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from draftd.observe import facts
from draftd.storage.files import make_folder, move, remove_files, remove_folder, write_file
from draftd.storage.folder import CollectionFolder
from draftd.storage.manifest import Manifest
from draftd.storage.problem import DamagedError

# Names the collections of an import that is under way. While it is there, they do not exist.
PENDING = "pending-import.json"
NO_FILES: Mapping[str, Path] = {}


class Store:
    """`scratch`: an empty folder of the same file system, for what is under way; nothing in it survives a start."""

    def __init__(self, data_directory: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.quarantine = data_directory / "quarantine"
        self._root = data_directory / "collections"
        self._pending = data_directory / PENDING

    def open(self) -> list[CollectionFolder]:
        """What a start finds. Damaged collections move to the quarantine, unfinished ones are removed."""
        if not self._root.exists():
            make_folder(self._root)
        self._roll_back_import()
        opened = (self._open(path) for path in sorted(self._root.iterdir()) if path.is_dir())
        return [folder for folder in opened if folder is not None]

    def create(
        self, manifest: Manifest, built: Mapping[str, Path] = NO_FILES, identity: str | None = None
    ) -> CollectionFolder:
        """A new collection of files in `scratch`, by the names that the manifest gives them, or of journals.

        `identity`: one of `all_or_none`."""
        return CollectionFolder.create(self._root / (identity or uuid.uuid4().hex), manifest, built)

    def remove(self, folder: CollectionFolder) -> None:
        """On return nothing of it is on the disk."""
        remove_folder(folder.path, self.scratch)

    def put_aside(self, path: Path, why: str) -> None:
        """Into the quarantine, where nothing reads it; a person may."""
        if not self.quarantine.exists():
            make_folder(self.quarantine)
        target = self.quarantine / path.name
        if target.exists():
            target = target.with_name(f"{path.name}-{uuid.uuid4().hex}")
        move(path, target)
        facts.quarantined(target, why)

    @contextmanager
    def all_or_none(self, count: int) -> Iterator[list[str]]:
        """So many identities: what is created with them stays if the context is left without an error or a crash."""
        identities = [uuid.uuid4().hex for _ in range(count)]
        write_file(self._pending, json.dumps(identities).encode())
        try:
            yield identities
        except BaseException:
            self._roll_back(identities)
            raise
        remove_files(self._pending.parent, [PENDING])

    def _roll_back_import(self) -> None:
        if not self._pending.exists():
            return
        try:
            identities = json.loads(self._pending.read_bytes())
        except ValueError as error:
            self.put_aside(self._pending, f"no list of collections: {error}")
        else:
            self._roll_back(identities)

    def _roll_back(self, identities: Sequence[str]) -> None:
        for identity in identities:
            path = self._root / identity
            if path.exists():
                remove_folder(path, self.scratch)
        remove_files(self._pending.parent, [PENDING])

    def _open(self, path: Path) -> CollectionFolder | None:
        try:
            return CollectionFolder.open(path)
        except FileNotFoundError:
            # A crash came before its first manifest; nobody was told that it is there.
            remove_folder(path, self.scratch)
        except DamagedError as error:
            self.put_aside(path, str(error))
        return None
