"""The C++ core: indexes, sessions and drafting, as a Python extension."""

from draftd.native._core import (
    Engine,
    HistoryDocuments,
    HistoryState,
    Index,
    IntegrityError,
    Level,
    Segment,
    SegmentBuilder,
    SegmentError,
    StepColumns,
    Tails,
    catalogue,
    nearest,
)

__all__ = [
    "Engine",
    "HistoryDocuments",
    "HistoryState",
    "Index",
    "IntegrityError",
    "Level",
    "Segment",
    "SegmentBuilder",
    "SegmentError",
    "StepColumns",
    "Tails",
    "catalogue",
    "nearest",
]
