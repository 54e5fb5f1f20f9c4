"""The client's own copy of one request: enough to tell a drafter that knows nothing about it."""

from draftd.wire import DraftSync, Status

SYNC_OVERHEAD = 16  # bytes: field headers


class Mirror:
    """What was committed, and how far the drafter is believed to know it.

    Identity, not value, makes two mirrors the same: they are dictionary keys.
    """

    __slots__ = ("closed", "epoch", "handle", "has_tail", "opening", "output", "prompt_length", "refused", "synced_in")

    def __init__(self, opening: DraftSync) -> None:
        self.opening = opening  # everything stated at open, sent again at every re-sync
        self.handle = opening.request
        self.epoch = opening.epoch
        self.prompt_length = len(opening.prompt) // 4
        self.output: list[int] = []  # committed so far
        self.has_tail = False  # since the last commit a draft with nodes was delivered, so the next one can speak of it
        self.synced_in = 0  # the step that carried the latest DraftSync
        self.refused = Status.OK  # why the drafter took no DraftSync of it; then it is not asked again
        self.closed = False

    @property
    def length(self) -> int:
        """Committed length: prompt and output, in tokens."""
        return self.prompt_length + len(self.output)

    @property
    def sync_bytes(self) -> int:
        """What a DraftSync of it takes of a frame, at most."""
        return self.opening.ByteSize() + 4 * len(self.output) + SYNC_OVERHEAD

    def cut(self, length: int) -> None:
        """Forget what was committed beyond `length`."""
        del self.output[length - self.prompt_length :]
