"""What survives a restart: files, and the rules by which they appear and go. Knows bytes and names, no sessions.

`<data_dir>/collections/<id>/` is one corpus or history: `manifest.json`, `*.segment`, `journal-<generation>`. A step is
durable when the manifest that says so is renamed into place and its folder synced; other segments and journals that a
start finds are removed. What is damaged moves to `<data_dir>/quarantine/`, and the rest serves.
"""

from draftd.storage.archive import Bytes, Packed, Unpacked, read_archive, write_archive
from draftd.storage.folder import CollectionFolder, fresh_segment_name
from draftd.storage.manifest import Manifest, SegmentFile
from draftd.storage.pending import Pending
from draftd.storage.problem import DamagedError, VersionError
from draftd.storage.scratch import Scratch
from draftd.storage.store import Store, fresh_identity

__all__ = [
    "Bytes",
    "CollectionFolder",
    "DamagedError",
    "Manifest",
    "Packed",
    "Pending",
    "Scratch",
    "SegmentFile",
    "Store",
    "Unpacked",
    "VersionError",
    "fresh_identity",
    "fresh_segment_name",
    "read_archive",
    "write_archive",
]
