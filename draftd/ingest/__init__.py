"""From what people have (text, token ids, files, posted bodies) to the columns of a corpus. Never in the step path."""

from draftd.ingest.columns import TokenColumns
from draftd.ingest.job import CorpusKey, DescribeJob, KnownTokenizer, Loaded, LoadFile, LoadJob, LoadPost
from draftd.ingest.loader import Loader, LoaderError
from draftd.ingest.problem import IngestError

__all__ = [
    "CorpusKey",
    "DescribeJob",
    "IngestError",
    "KnownTokenizer",
    "LoadFile",
    "LoadJob",
    "LoadPost",
    "Loaded",
    "Loader",
    "LoaderError",
    "TokenColumns",
]
