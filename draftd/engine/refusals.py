"""Frames that can't be taken as a whole, and the checks that find them before anything is applied."""

from google.protobuf.message import DecodeError

from draftd import native
from draftd.wire import Frame, Status, StepBatch, VerifyCommit


class Rejected(Exception):
    """A frame that can't be taken as a whole. Nothing of it was applied."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def parse(frame: bytes, message: Frame, limit: int) -> None:
    """Raises Rejected for no Frame and for one of more than `limit` bytes."""
    try:
        message.ParseFromString(frame)  # also one above the limit: its sender waits for an answer to its step
    except DecodeError as error:
        if len(frame) <= limit:
            raise Rejected(Status.MALFORMED, f"no Frame: {error}") from None
    if len(frame) > limit:
        raise Rejected(
            Status.LIMIT_EXCEEDED, f"a frame of {len(frame)} bytes; at most {limit} (engine.max_frame_bytes)"
        )


def check_batch(batch: StepBatch, max_rows: int) -> None:
    """Raises Rejected for what no step can be."""
    if batch.step == 0:
        raise Rejected(Status.MALFORMED, "step 0 is for tails nobody asked for")
    rows = len(batch.commit.request) // 4
    if rows > max_rows:
        raise Rejected(Status.LIMIT_EXCEEDED, f"{rows} rows; at most {max_rows} (engine.max_rows)")
    if not 0.0 <= batch.min_survival <= 1.0:
        raise Rejected(Status.MALFORMED, f"min_survival {batch.min_survival} is not in [0, 1]")
    closes = len(batch.close.reason)
    if not len(batch.close.request) == len(batch.close.epoch) == 4 * closes:
        raise Rejected(Status.MALFORMED, f"close: columns request and epoch do not have {closes} entries, as reason")


def step_columns(commit: VerifyCommit, max_nodes: bytes) -> native.StepColumns:
    """Raises Rejected when they do not fit together."""
    try:
        # By position: names cost more than the call.
        return native.StepColumns(
            commit.request,
            commit.epoch,
            commit.start,
            commit.token_end,
            commit.tokens,
            commit.tail_base,
            commit.verified,
            commit.bitmap_end,
            commit.bitmap,
            max_nodes,
        )
    except ValueError as error:
        raise Rejected(Status.MALFORMED, f"commit: {error}") from None
