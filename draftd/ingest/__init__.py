"""From what people have (text, token ids, files, uploads) to the segments of a corpus. Never in the step path."""

from draftd.ingest.cancellation import Cancellation
from draftd.ingest.job import (
    SEGMENT,
    Ack,
    Built,
    CorpusKey,
    DescribeJob,
    KnownTokenizer,
    LoadColumns,
    Loaded,
    LoadFile,
    LoadJob,
    LoadPost,
    LoadRequest,
    LoadUpload,
    Mode,
    Opened,
    Progress,
    RebuildJob,
    SealJob,
    Stage,
)
from draftd.ingest.loader import Cancelled, Loader, LoaderError
from draftd.ingest.problem import IngestError, TooLarge
from draftd.ingest.selection import Selection

__all__ = [
    "SEGMENT",
    "Ack",
    "Built",
    "Cancellation",
    "Cancelled",
    "CorpusKey",
    "DescribeJob",
    "IngestError",
    "KnownTokenizer",
    "LoadColumns",
    "LoadFile",
    "LoadJob",
    "LoadPost",
    "LoadRequest",
    "LoadUpload",
    "Loaded",
    "Loader",
    "LoaderError",
    "Mode",
    "Opened",
    "Progress",
    "RebuildJob",
    "SealJob",
    "Selection",
    "Stage",
    "TooLarge",
]
