"""Readers: a file or a folder to texts and token ids, in the order they stand there."""

from draftd.ingest.readers.files import ENDINGS, Watcher, read_file, read_path, read_upload
from draftd.ingest.readers.limits import ReadLimits

__all__ = ["ENDINGS", "ReadLimits", "Watcher", "read_file", "read_path", "read_upload"]
