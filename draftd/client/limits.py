"""What one frame may hold: the drafter's HelloReply says it."""

from dataclasses import dataclass

from draftd.wire import HelloReply

FRAME_OVERHEAD = 4096  # bytes, more than everything of a frame but its rows and syncs: 256 closes, field headers
# Re-syncs beyond this many bytes of text wait for the next step, so that a restarted drafter is told about
# thousands of long requests over several steps and not in one frame that takes it long.
SYNC_BYTES_PER_STEP = 16 << 20


@dataclass(frozen=True)
class Limits:
    """The defaults stand until the first HelloReply comes; a drafter with lower ones answers LIMIT_EXCEEDED."""

    frame_bytes: int = 64 << 20
    rows: int = 1024  # of one step

    @property
    def payload_bytes(self) -> int:
        """For the rows of one frame, or for its syncs."""
        return self.frame_bytes - FRAME_OVERHEAD


def stated_limits(reply: HelloReply) -> Limits:
    """What a drafter says of itself; 0 is nothing said."""
    return Limits(reply.max_frame_bytes or Limits.frame_bytes, reply.max_rows or Limits.rows)
