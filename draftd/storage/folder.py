"""One collection on disk: a folder with a manifest and the files that it names."""

import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from draftd.storage.files import make_folder, move, remove_files, write_file
from draftd.storage.journal import Journal, journal_of, read_journal
from draftd.storage.manifest import MANIFEST, Manifest, SegmentFile, read_manifest, write_manifest

_JOURNAL_NAME = re.compile(r"journal-(\d{1,19})")


def fresh_segment_name() -> str:
    return f"{uuid.uuid4().hex}.segment"


def journal_name(generation: int) -> str:
    return f"journal-{generation}"


class CollectionFolder:
    """Its changes come from one thread at a time."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(cls, path: Path, manifest: Manifest, built: Mapping[str, Path]) -> Self:
        """A new one; `built` are its files, by the names that the manifest gives them, or of journals."""
        folder = cls(path, manifest)
        make_folder(path)
        for name, file in built.items():
            move(file, path / name)
        folder.commit(manifest)
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Removes what the manifest does not name. Raises DamagedError, or FileNotFoundError without a manifest."""
        folder = cls(path, read_manifest(path))
        folder._remove_unnamed()
        return folder

    def file(self, segment: SegmentFile) -> Path:
        return self.path / segment.file

    def adopt(self, built: Path, name: str) -> None:
        """Takes a file in; it belongs to the collection once a committed manifest has the name."""
        move(built, self.path / name)

    def commit(self, manifest: Manifest) -> None:
        """From here on the collection is what `manifest` says; files that it does not name are gone on return."""
        write_manifest(self.path, manifest)
        self.manifest = manifest
        self._remove_unnamed()

    def append_to_journal(self, generation: int, payload: bytes) -> None:
        """Returns when it is on the disk; after an OSError it is not."""
        with Journal(self.path / journal_name(generation)) as journal:
            journal.append(payload)

    def journals(self) -> dict[int, list[bytes]]:
        """The payloads of every generation that is in no segment, in order; what is torn is cut."""
        return {generation: read_journal(self.path / name) for generation, name in sorted(self._journal_names())}

    def rewrite_journal(self, generation: int, payloads: Sequence[bytes]) -> None:
        write_file(self.path / journal_name(generation), journal_of(payloads))

    def _journal_names(self) -> list[tuple[int, str]]:
        matches = (_JOURNAL_NAME.fullmatch(entry.name) for entry in self.path.iterdir())
        names = [(int(match[1]), match[0]) for match in matches if match]
        if self.manifest.kind == "corpus":
            return []
        return [(generation, name) for generation, name in names if generation >= self.manifest.generation]

    def _remove_unnamed(self) -> None:
        named = {MANIFEST, *(segment.file for segment in self.manifest.segments)}
        named.update(name for _, name in self._journal_names())
        if unnamed := {entry.name for entry in self.path.iterdir()} - named:
            remove_files(self.path, unnamed)
