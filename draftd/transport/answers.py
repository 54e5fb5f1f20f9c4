"""What every transport of frames does alike while it is behind, and at its end."""

from google.protobuf.message import DecodeError

from draftd.wire import Error, Frame, Status

SHED_ABOVE = 64  # frames of one verifier waiting: from here on only commits are taken, drafts are shed
MOST_DEFERRED = 1024  # answers that wait for indexing; beyond, an answer goes out at once


def shutting_down(frame: bytes) -> bytes:
    """Says so for the step of that frame, where there is one."""
    try:
        step = Frame.FromString(frame).step.step
    except DecodeError:
        step = 0
    error = Error(status=Status.SHUTTING_DOWN, message="the drafter is shutting down", step=step)
    return Frame(error=error).SerializeToString()
