"""The client's own copy of one request: enough to tell a drafter that knows nothing about it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from draftd.wire import NO_TAIL, DraftSync, Status

if TYPE_CHECKING:
    from draftd.client.tail_buffer import KeptTail
    from draftd.client.tape import Tape

SYNC_OVERHEAD = 18  # bytes: headers of the sync itself, its prompt and its output


class Mirror:
    """What was committed, and how far the drafter is believed to know it.

    Identity, not value, makes two mirrors the same: they are dictionary keys.
    """

    __slots__ = (
        "asked_at",
        "closed",
        "epoch",
        "handle",
        "kept",
        "named_from",
        "opening",
        "output",
        "part",
        "prompt",
        "prompt_length",
        "refused",
        "synced_in",
        "tail_base",
        "tail_nodes",
        "tape",
    )

    def __init__(self, opening: DraftSync, prompt: bytes) -> None:
        self.opening = opening  # everything stated at open but the prompt, sent again at every re-sync
        self.prompt = prompt  # i32[n]; apart, as to read it from a message is to copy it
        self.handle = opening.request
        self.epoch = opening.epoch
        self.prompt_length = len(prompt) // 4
        self.output: list[int] = []  # committed so far
        # The draft with nodes that was delivered since the last commit, so that the next one can speak of it:
        self.tail_base = NO_TAIL  # base of its tail
        self.part: NDArray[np.int64] | None = None  # the nodes of that tail that it has; None: all
        self.tail_nodes = 0  # of that tail, where the draft is a part of it
        # For an engine that does not wait:
        self.kept: KeptTail | None = None  # the newest tail
        self.asked_at = -1  # the base of the last tail that nobody waits for
        self.named_from = 0  # tails of earlier steps are not spoken of: a later one may have the same base
        self.tape: Tape | None = None
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
        return self.opening.ByteSize() + len(self.prompt) + 4 * len(self.output) + SYNC_OVERHEAD

    def cut(self, length: int) -> None:
        """Forget what was committed beyond `length`."""
        del self.output[length - self.prompt_length :]
        self.kept = None
        if self.tape is not None:
            self.tape.own.cut(length)
        self.told_of_no_draft()

    def forget_drafter(self) -> None:
        """Nothing that it sent is drafted from any more: nobody would say what of it is taken away."""
        self.kept = self.tape = None

    def told_of_no_draft(self) -> None:
        """The next commit speaks of no draft."""
        self.tail_base = NO_TAIL
        self.part = None

    def since(self, base: int) -> Sequence[int]:
        """The tokens committed from `base` on, which lies in the output."""
        return self.output[base - self.prompt_length :]

    def asks_ahead(self, step: int) -> None:
        """A step that nobody waits for gets a tail with this length as its base.

        Lengths that only grow are all different; from where they don't, earlier tails are not spoken of."""
        if self.length <= self.asked_at:
            self.named_from = step
        self.asked_at = self.length

    def speaks_of(self, tail: "KeptTail", part: NDArray[np.int64]) -> None:
        """The next commit speaks of these nodes of a kept tail, if its base can mean no other."""
        if tail.step < self.named_from:
            return
        self.tail_base = tail.draft.base
        self.tail_nodes = len(tail.draft)
        self.part = part
