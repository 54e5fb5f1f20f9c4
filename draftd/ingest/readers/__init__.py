"""Readers: a file or a folder to texts and token ids, in the order they stand there."""

from draftd.ingest.readers.files import ENDINGS, TEXT_ENDINGS, read_file, read_path, read_upload
from draftd.ingest.readers.limits import ReadLimits
from draftd.ingest.readers.position import Position

__all__ = ["ENDINGS", "TEXT_ENDINGS", "Position", "ReadLimits", "read_file", "read_path", "read_upload"]
