"""One collection on disk: a folder with a manifest and the files that it names."""

import re
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from draftd.storage.files import move, names_in, remove_file, sync_folder, write_file
from draftd.storage.journal import Journal, journal_of, read_journal
from draftd.storage.manifest import MANIFEST, Manifest, SegmentFile, read_manifest, write_manifest

_JOURNAL_NAME = re.compile(r"journal-(\d{1,19})")


def fresh_segment_name() -> str:
    return f"{uuid.uuid4().hex}.segment"


def journal_name(generation: int) -> str:
    return f"journal-{generation}"


class CollectionFolder:
    """Its changes come from one thread at a time.

    A change that raised an OSError was not made, or is not on the disk for sure: then `sync` finishes it."""

    def __init__(self, path: Path, manifest: Manifest, unsynced: Iterable[Path] = ()) -> None:
        """`unsynced`: folders that must be synced for it to be on the disk."""
        self.path = path
        self.manifest = manifest
        self.unsynced = set(unsynced)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Removes what the manifest does not name. Raises DamagedError, or FileNotFoundError without a manifest."""
        folder = cls(path, read_manifest(path))
        folder.clean()
        return folder

    def file(self, segment: SegmentFile) -> Path:
        return self.path / segment.file

    def adopt(self, built: Path, name: str) -> None:
        """Takes a file in; it belongs to the collection once a committed manifest has the name."""
        move(built, self.path / name)

    def commit(self, manifest: Manifest) -> None:
        """From here on the collection is what `manifest` says; on the disk, once `sync` returned.

        After an OSError it is what it was."""
        write_manifest(self.path, manifest)
        self.manifest = manifest
        self.unsynced.add(self.path)

    def sync(self) -> None:
        """What was changed is on the disk on return."""
        while self.unsynced:
            path = next(iter(self.unsynced))
            sync_folder(path)
            self.unsynced.remove(path)

    def clean(self) -> None:
        """On return the folder holds what the manifest names, and nothing else."""
        self.sync()  # until then, a crash may bring back a manifest that names other files
        named = {MANIFEST, *(segment.file for segment in self.manifest.segments)}
        named.update(name for _, name in self._journal_names())
        for name in set(names_in(self.path)) - named:
            self.unsynced.add(self.path)
            remove_file(self.path / name)
        self.sync()

    def append_to_journal(self, generation: int, payload: bytes) -> None:
        """Returns when it is on the disk."""
        path = self.path / journal_name(generation)
        if not path.exists():
            self.unsynced.add(self.path)
        with Journal(path) as journal:
            journal.append(payload)
        self.sync()

    def journals(self) -> dict[int, list[bytes]]:
        """The payloads of every generation that is in no segment, in order; what is torn is cut."""
        return {generation: read_journal(self.path / name) for generation, name in sorted(self._journal_names())}

    def rewrite_journal(self, generation: int, payloads: Sequence[bytes]) -> None:
        """Returns when it is on the disk."""
        write_file(self.path / journal_name(generation), journal_of(payloads))
        self.unsynced.add(self.path)
        self.sync()

    def _journal_names(self) -> list[tuple[int, str]]:
        if self.manifest.kind == "corpus":
            return []
        matches = (_JOURNAL_NAME.fullmatch(name) for name in names_in(self.path))
        names = [(int(match[1]), match[0]) for match in matches if match]
        return [(generation, name) for generation, name in names if generation >= self.manifest.generation]
