"""Hidden states of the target: read from a commit, and held until the source that reads them is asked."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from draftd.engine.refusals import Rejected
from draftd.observe import facts
from draftd.sources import HiddenStates
from draftd.wire import WIDEST_STATE, Status, VerifyCommit

MOST_BYTES = 256 << 20  # held for all requests of a server
REQUESTS_PART = 4  # one request has at most this part of it


def hidden_states(commit: VerifyCommit) -> HiddenStates | None:
    """Those that a commit brings; None: none. Raises Rejected for columns that do not fit together or to its tokens."""
    if not commit.HasField("hidden"):
        return None
    hidden, rows = commit.hidden, len(commit.request) // 4
    width, starts, ends, values = hidden.width, hidden.start, hidden.end, hidden.values  # once: each look copies
    if not (starts or ends or values):
        return None
    if not 1 <= width <= WIDEST_STATE:
        raise Rejected(Status.MALFORMED, f"commit: hidden: width is {width}; 1 to {WIDEST_STATE}")
    if not len(starts) == len(ends) == 4 * rows:
        raise Rejected(
            Status.MALFORMED, f"commit: hidden: columns start and end do not have {rows} entries, as request"
        )
    start, end = np.frombuffer(starts, "<u4"), np.frombuffer(ends, "<u4")
    states = int(end[-1]) if rows else 0
    if len(values) != 2 * width * states:
        raise Rejected(
            Status.MALFORMED,
            f"commit: hidden: values are {len(values)} bytes; {states} states of {width} are {2 * width * states}",
        )
    counts = np.diff(end.astype(np.int64), prepend=0)
    token_end = np.frombuffer(commit.token_end, "<u4").astype(np.int64)
    length = np.frombuffer(commit.start, "<u4") + np.diff(token_end, prepend=0)
    _refuse(counts < 0, "ends before it begins")
    _refuse((counts > 0) & (start + counts >= length), "has states of tokens that are not committed before its newest")
    return HiddenStates(start, end, np.frombuffer(values, bfloat16).reshape(states, width))


def no_states(rows: int) -> HiddenStates:
    return HiddenStates(np.zeros(rows, np.uint32), np.zeros(rows, np.uint32), np.empty((0, 0), bfloat16))


def _refuse(wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        raise Rejected(Status.MALFORMED, f"commit: hidden: row {wrong.argmax()} {what}")


@dataclass(slots=True)
class _Held:
    """Of one request, at positions that follow each other."""

    start: int = 0
    count: int = 0
    parts: deque[NDArray[bfloat16]] = field(default_factory=deque)  # none is empty, or a view

    @property
    def width(self) -> int:
        return self.parts[0].shape[1] if self.parts else 0

    @property
    def size(self) -> int:
        """In bytes."""
        return 2 * self.width * self.count

    def cut(self, end: int) -> None:
        """Forgets what is at `end` and behind it."""
        while self.count and self.start + self.count > end:
            part = self.parts.pop()
            self.count -= len(part)
            self._append(part[: max(0, end - self.start - self.count)])

    def put(self, start: int, values: NDArray[bfloat16]) -> None:
        """In place of what is there. What lies before a gap, or has another width, is forgotten."""
        self.cut(start)
        if self.start + self.count != start or self.width != values.shape[1]:
            self.start, self.count = start, 0
            self.parts.clear()
        self._append(values)

    def keep_newest(self, most_bytes: int) -> None:
        while self.size > most_bytes:
            oldest = self.parts.popleft()
            too_many = self.count - most_bytes // (2 * oldest.shape[1])
            if len(oldest) > too_many:
                self.parts.appendleft(oldest[too_many:].copy())
            gone = min(len(oldest), too_many)
            self.start, self.count = self.start + gone, self.count - gone

    def _append(self, part: NDArray[bfloat16]) -> None:
        if len(part):
            self.parts.append(part.copy())  # a view would keep all of its frame
            self.count += len(part)


class HeldStates:
    """Of requests, since their source was asked last. Thread-safe.

    Of a request that has more than its part of `most_bytes` the oldest go; where all together are more, the requests
    that brought none for the longest time lose theirs."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._of: OrderedDict[int, _Held] = OrderedDict()  # by the source's number of the request
        self._size = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return self._size

    def put(self, request: int, unchanged: int, start: int, values: NDArray[bfloat16]) -> None:
        """`values`: [states, width], from position `start` on, perhaps none. Of what is held, that of the first
        `unchanged` tokens stays."""
        with self._lock:
            held = self._of.get(request) or _Held()
            before = held.size
            held.cut(unchanged)
            if len(values):
                held.put(start, values)
                held.keep_newest(self._most_bytes // REQUESTS_PART)
                self._of[request] = held
                self._of.move_to_end(request)
            if not held.count:
                self._of.pop(request, None)
            self._grown(held.size - before)
            while self._size > self._most_bytes:
                self._grown(-self._of.popitem(last=False)[1].size)

    def of(self, requests: Sequence[int]) -> HiddenStates:
        """A row for each request. One whose states are not as wide as those of rows before it has none."""
        with self._lock:
            held = [self._of.get(request, _Held()) for request in requests]
            width = next((one.width for one in held if one.count), 0)
            rows = [(one.start, one.count, list(one.parts)) if one.width == width else (0, 0, []) for one in held]
        starts, counts, parts = zip(*rows, strict=True) if rows else ((), (), ())
        values = [part for row in parts for part in row]
        return HiddenStates(
            np.array(starts, np.uint32),
            np.cumsum(counts, dtype=np.uint32),
            np.concatenate(values) if values else np.empty((0, 0), bfloat16),
        )

    def drop(self, requests: Sequence[int]) -> None:
        with self._lock:
            for request in requests:
                if (held := self._of.pop(request, None)) is not None:
                    self._grown(-held.size)

    def clear(self) -> None:
        with self._lock:
            self._of.clear()
            self._grown(-self._size)

    def _grown(self, by: int) -> None:
        self._size += by
        facts.states_held(by)
