"""What an import under way brings in. While the list is there, none of it exists."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from draftd.storage.files import remove_file, sync_folder, write_file
from draftd.storage.manifest import SEGMENT_NAME
from draftd.storage.problem import DamagedError

IDENTITY = r"^[0-9a-f]{32}$"


@dataclass(frozen=True, slots=True)
class Pending:
    """New collections, and new segments of collections that were there."""

    identities: Sequence[str] = ()
    segments: Sequence[str] = ()


class PendingFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        return self.path.exists()

    def write(self, pending: Pending) -> None:
        write_file(self.path, json.dumps([list(pending.identities), list(pending.segments)]).encode())
        sync_folder(self.path.parent)

    def read(self) -> Pending:
        """Raises DamagedError."""
        try:
            identities, segments = json.loads(self.path.read_bytes())
            _check(identities, IDENTITY)
            _check(segments, SEGMENT_NAME)
        except (ValueError, TypeError):
            raise DamagedError("it is no list of collections and segments") from None
        return Pending(identities, segments)

    def remove(self) -> None:
        """Not synced."""
        if self.path.exists():
            remove_file(self.path)


def _check(names: Sequence[str], pattern: str) -> None:
    if not all(re.search(pattern, name) for name in names):
        raise ValueError("names that no import makes")
