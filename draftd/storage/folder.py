"""One collection on disk: a folder with a manifest and the files that it names."""

import re
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Self

from draftd.storage.files import UNFINISHED, move, names_in, remove_file, sync_folder, write_file
from draftd.storage.journal import Journal, journal_of, mend_journal, read_journal
from draftd.storage.manifest import MANIFEST, SEGMENT_NAME, Manifest, SegmentFile, read_manifest, write_manifest
from draftd.storage.problem import DamagedError

LEARNED = "learned"  # what a namespace learned, beside its history
_JOURNAL_NAME = re.compile(r"journal-(\d{1,19})")
_OURS = re.compile(rf"{SEGMENT_NAME}|^{_JOURNAL_NAME.pattern}$|{re.escape(UNFINISHED)}$")


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
        self._ends: dict[int, int] = {}  # of what was acknowledged of the journals that were appended to

    @classmethod
    def open(cls, path: Path, without: Collection[str], keep_aside: Callable[[Path, str], None]) -> Self:
        """Removes the segments `without`, and what the manifest does not name. Raises DamagedError.

        `keep_aside` is told of damaged journals."""
        folder = cls(path, read_manifest(path))
        segments = tuple(segment for segment in folder.manifest.segments if segment.file not in without)
        if segments != folder.manifest.segments:
            folder.commit(folder.manifest.model_copy(update={"segments": segments}))
        folder.clean()
        for _, name in folder._journal_names():
            mend_journal(path / name, keep_aside)
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
            path = min(self.unsynced)
            sync_folder(path)
            self.unsynced.remove(path)

    def clean(self) -> None:
        """On return there is no segment and no journal but what the manifest names. Other files are none of its own."""
        self.sync()  # until then, a crash may bring back a manifest that names other files
        named = {MANIFEST, *(segment.file for segment in self.manifest.segments)}
        named.update(name for _, name in self._journal_names())
        for name in filter(_OURS.search, sorted(set(names_in(self.path)) - named)):
            self.unsynced.add(self.path)
            remove_file(self.path / name)
        self.sync()

    def append_to_journal(self, generation: int, payload: bytes) -> None:
        """Returns when it is on the disk. After an OSError it is not; what is there of it goes with the next call."""
        path = self.path / journal_name(generation)
        if not path.exists():
            self.unsynced.add(self.path)
        with Journal(path) as journal:
            self.sync()
            end = self._ends.setdefault(generation, journal.end)
            if journal.end > end:
                journal.cut(end)
            journal.append(payload)
            self._ends[generation] = journal.end

    def journals(self) -> dict[int, list[bytes]]:
        """The payloads of every generation that is in no segment, in order."""
        return {
            generation: read_journal(self.path / name, self._ends.get(generation))
            for generation, name in sorted(self._journal_names())
        }

    def rewrite_journal(self, generation: int, payloads: Sequence[bytes]) -> None:
        """Returns when it is on the disk."""
        content = journal_of(payloads)
        write_file(self.path / journal_name(generation), content)
        self._ends[generation] = len(content)
        self.unsynced.add(self.path)
        self.sync()

    @property
    def learned_path(self) -> Path:
        return self.path / LEARNED

    def learned(self) -> bytes | None:
        """What was kept last; None: nothing. Raises DamagedError for what is no file."""
        if not self.learned_path.exists():
            return None
        if not self.learned_path.is_file():  # reading a pipe would never end
            raise DamagedError(f"{self.learned_path} is no file")
        return self.learned_path.read_bytes()

    def keep_learned(self, content: bytes) -> None:
        """Returns when it is on the disk. A crash leaves it or what was kept before."""
        write_file(self.learned_path, content)
        self.unsynced.add(self.path)
        self.sync()

    def forget_learned(self) -> None:
        """On return there is none on the disk."""
        if self.learned_path.exists():
            self.unsynced.add(self.path)
            remove_file(self.learned_path)
        self.sync()

    def _journal_names(self) -> list[tuple[int, str]]:
        if self.manifest.kind == "corpus":
            return []
        matches = (_JOURNAL_NAME.fullmatch(name) for name in names_in(self.path))
        names = [(int(match[1]), match[0]) for match in matches if match]
        return [(generation, name) for generation, name in names if generation >= self.manifest.generation]
