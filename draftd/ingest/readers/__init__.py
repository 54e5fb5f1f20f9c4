"""Readers: a file or a folder to texts and token ids, in the order they stand there."""

from draftd.ingest.readers.files import ENDINGS, read_file, read_path, read_upload
from draftd.ingest.readers.limits import ReadLimits
from draftd.ingest.readers.position import Position

__all__ = ["ENDINGS", "Position", "ReadLimits", "read_file", "read_path", "read_upload"]
