"""The wire contract in Python: messages, codes and the namespace. A leaf: imports nothing of draftd."""

from draftd.wire.catalogue import CloseReason, Pacing, Preset, Reason, Shape, Share, Source, Status, TailKind
from draftd.wire.history import HistoryDocuments, HistoryState
from draftd.wire.label import LONGEST_LABEL, check_label
from draftd.wire.messages import (
    CostTable,
    DraftClose,
    DraftSync,
    DraftTail,
    DraftTape,
    Error,
    Frame,
    Hello,
    HelloReply,
    HiddenStates,
    RowError,
    StepBatch,
    StepReply,
    VerifyCommit,
)
from draftd.wire.namespace import Namespace

PROTOCOL = 1  # version of the contract, in Hello and HelloReply
NO_TAIL = 2**32 - 1  # VerifyCommit.tail_base: the commit used no tail
ALL_VERIFIED = -1  # VerifyCommit.verified: every node of the tail went through the target
BITMAP_VERIFIED = -2  # VerifyCommit.verified: the row's bitmap says which nodes did
MOST_SPEC_FACTOR = 1e9  # DraftSync.max_spec_factor
MOST_TAPE_WINDOWS = 16  # StepBatch.tape_windows: nobody gets more
WIDEST_STATE = 65536  # HiddenStates.width: of the widest models, of 16384, four layers
NO_PARENT = -1  # DraftTail.parents: the node hangs from the committed prefix itself

__all__ = [
    "ALL_VERIFIED",
    "BITMAP_VERIFIED",
    "LONGEST_LABEL",
    "MOST_SPEC_FACTOR",
    "MOST_TAPE_WINDOWS",
    "NO_PARENT",
    "NO_TAIL",
    "PROTOCOL",
    "WIDEST_STATE",
    "CloseReason",
    "CostTable",
    "DraftClose",
    "DraftSync",
    "DraftTail",
    "DraftTape",
    "Error",
    "Frame",
    "Hello",
    "HelloReply",
    "HiddenStates",
    "HistoryDocuments",
    "HistoryState",
    "Namespace",
    "Pacing",
    "Preset",
    "Reason",
    "RowError",
    "Shape",
    "Share",
    "Source",
    "Status",
    "StepBatch",
    "StepReply",
    "TailKind",
    "VerifyCommit",
    "check_label",
]
