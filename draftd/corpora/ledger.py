"""The bytes of segments against their limits: reserved before a segment is built, given back when it is unmapped."""

import threading
from collections import Counter

from pydantic import ByteSize

from draftd.config import LimitSettings
from draftd.corpora.problem import Level, OverLimit
from draftd.wire import Namespace


class Ledger:
    """Counts by namespace, tenant and process. Thread-safe.

    A namespace here is a tenant's model and adapter: a corpus that two of its tokenizers' names can read counts once.
    """

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._used: Counter[tuple[str, ...]] = Counter()
        self._lock = threading.Lock()

    def charge(self, owner: Namespace) -> "Charge":
        """A new account of zero bytes."""
        return Charge(self, owner)

    def used(self) -> int:
        """Bytes of the process."""
        return self._used[()]

    def move(self, owner: Namespace, kept: int, building: int) -> None:
        """Adds to what is used, or takes away. Raises OverLimit; then nothing changed."""
        levels: tuple[tuple[Level, tuple[str, ...], int, int], ...] = (
            ("namespace", (owner.tenant, owner.model, owner.adapter), kept, self._limits.namespace_bytes),
            ("tenant", (owner.tenant,), kept, self._limits.tenant_bytes),
            ("process", (), kept + building, self._limits.process_bytes),
        )
        with self._lock:
            for level, place, more, limit in levels:
                missing = self._used[place] + more - limit
                if more > 0 and missing > 0:
                    raise OverLimit(
                        f"{owner}: {_readable(more)} more than the {_readable(self._used[place])} in use pass the "
                        f"limit limits.{level}_bytes, {_readable(limit)}; remove a corpus or raise the limit",
                        level,
                        missing,
                    )
            for _, place, more, _ in levels:
                self._used[place] += more


class Charge:
    """What one segment is counted with, from before it is built until it is unmapped. Belongs to one thread."""

    def __init__(self, ledger: Ledger, owner: Namespace) -> None:
        self._ledger = ledger
        self._owner = owner
        self.kept = 0  # bytes of the segment
        self.building = 0  # bytes of who builds it

    def hold(self, kept: int, building: int = 0) -> None:
        """From now on it is so many bytes. Raises OverLimit; then it is as before."""
        self._ledger.move(self._owner, kept - self.kept, building - self.building)
        self.kept, self.building = kept, building

    def release(self) -> None:
        self.hold(0)


def _readable(count: int) -> str:
    return ByteSize(count).human_readable()
