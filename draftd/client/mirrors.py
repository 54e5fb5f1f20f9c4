"""All open requests of one client, and what the drafter still has to be told about them."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count

from draftd.client.columns import token_column, u32_column
from draftd.client.limits import SYNC_BYTES_PER_STEP, Limits
from draftd.client.mirror import Mirror
from draftd.wire import CloseReason, DraftSync, Status, StepBatch

CLOSES_PER_STEP = 256
MOST_CLOSES = 4096  # that wait to go out, with their texts: while no drafter answers, an engine goes on closing

Close = tuple[Mirror, CloseReason]


class Mirrors:
    """Knows which requests are open, under which handle and epoch, what a DraftSync has to repair, and which closes
    have not gone out yet."""

    def __init__(self) -> None:
        self._handles = count(1)
        self._by_handle: dict[int, Mirror] = {}
        self._handle_of: dict[str, int] = {}  # by request id
        self._unsynced: set[Mirror] = set()  # the drafter lacks (something of) these
        self._closes: deque[Close] = deque()  # not sent yet

    def open(self, opening: DraftSync, prompt: bytes) -> Mirror:
        """A new mirror; `prompt` is i32[n]. An id that is open already is re-opened: same handle, next epoch."""
        handle = self._handle_of.get(opening.request_id)
        if handle is None:
            opening.request, opening.epoch = next(self._handles) % 2**32, 1
        else:
            replaced = self._by_handle[handle]
            replaced.closed = True
            self._unsynced.discard(replaced)
            opening.request, opening.epoch = handle, replaced.epoch + 1
        mirror = Mirror(opening, prompt)
        self._by_handle[mirror.handle] = mirror
        self._handle_of[opening.request_id] = mirror.handle
        self._unsynced.add(mirror)
        return mirror

    def close(self, mirror: Mirror, reason: CloseReason) -> None:
        """The close goes out with the next frame; if the drafter lacks something of the request, after a last sync.

        Of more than MOST_CLOSES the oldest never goes: the drafter gives such a request up by itself.
        """
        mirror.closed = True
        del self._by_handle[mirror.handle]
        del self._handle_of[mirror.opening.request_id]
        self._closes.append((mirror, reason))
        while len(self._closes) > MOST_CLOSES:
            self._unsynced.discard(self._closes.popleft()[0])

    def find(self, handle: int, epoch: int) -> Mirror | None:
        """The open request of that handle and epoch."""
        mirror = self._by_handle.get(handle)
        return mirror if mirror is not None and mirror.epoch == epoch else None

    def miss(self, mirrors: Sequence[Mirror], tokens: Sequence[Sequence[int]]) -> None:
        """Take tokens that are not sent, because nobody is asked now: a re-sync will carry them."""
        for mirror, row in zip(mirrors, tokens, strict=True):
            mirror.output.extend(row)
            mirror.told_of_no_draft()
        self._unsynced.update(mirrors)

    def need_sync(self, mirrors: Iterable[Mirror]) -> None:
        """The drafter did not get, or no longer has, what it was told about these."""
        self._unsynced.update(mirror for mirror in mirrors if not mirror.closed)

    def need_sync_all(self, synced_before: int) -> None:
        """The drafter knows nothing of what was synced before that step."""
        for mirror in self._by_handle.values():
            if mirror.synced_in < synced_before:
                mirror.refused = Status.OK
                mirror.forget_drafter()
                self._unsynced.add(mirror)
        self._unsynced.update(mirror for mirror, _ in self._closes)

    def take_unsynced(self, mirrors: Sequence[Mirror], limits: Limits) -> tuple[list[Mirror], list[Mirror]]:
        """Those of `mirrors` to sync now, which one frame takes, and those that no frame of this drafter takes.

        The latter are refused: that is no other request's trouble. What remains goes with a later step.
        """
        if not self._unsynced:
            return [], []
        taken: list[Mirror] = []
        too_long: list[Mirror] = []
        room = min(SYNC_BYTES_PER_STEP, limits.payload_bytes)
        for mirror in mirrors:
            if mirror not in self._unsynced:
                continue
            size = mirror.sync_bytes
            if size > limits.payload_bytes:
                mirror.refused = Status.LIMIT_EXCEEDED
                too_long.append(mirror)
            elif size <= room or not taken:
                room -= size
                taken.append(mirror)
        self._unsynced.difference_update(taken, too_long)
        return taken, too_long

    def take_closes(self, limits: Limits) -> list[Close]:
        """The oldest closes that have to go out, as many as one step takes with the syncs before them."""
        closes: list[Close] = []
        room = min(SYNC_BYTES_PER_STEP, limits.payload_bytes)
        while self._closes and len(closes) < CLOSES_PER_STEP:
            mirror = self._closes[0][0]
            size = mirror.sync_bytes if mirror in self._unsynced else 0
            if closes and size > room:
                break
            room -= size
            closes.append(self._closes.popleft())
        return closes

    def put_back(self, closes: Sequence[Close]) -> None:
        """These got lost, and who knows what before them: they go first next time, after a sync."""
        self._closes.extendleft(reversed(closes))
        self._unsynced.update(mirror for mirror, _ in closes)


def add_syncs(batch: StepBatch, mirrors: Sequence[Mirror]) -> None:
    """Put a DraftSync for each into the batch."""
    for mirror in mirrors:
        sync = batch.sync.add()
        sync.CopyFrom(mirror.opening)
        sync.prompt = mirror.prompt
        sync.output = token_column(mirror.output)
        mirror.synced_in = batch.step
        mirror.forget_drafter()
        mirror.told_of_no_draft()


def add_closes(batch: StepBatch, closes: Sequence[Close]) -> None:
    """Put the closes into the batch."""
    batch.close.request = u32_column(mirror.handle for mirror, _ in closes)
    batch.close.epoch = u32_column(mirror.epoch for mirror, _ in closes)
    batch.close.reason = bytes(reason for _, reason in closes)
