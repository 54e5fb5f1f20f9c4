"""One collection: its folder, the segments mapped from it, and how it changes."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from draftd.corpora.segments import Fresh, Held, map_segment, mapped
from draftd.native import Segment
from draftd.storage import CollectionFolder, fresh_segment_name
from draftd.wire import Namespace

# Makes segments, oldest first, what drafts read. True: they now have what was in the frozen head of a history.
Show = Callable[[Sequence[Segment], bool], None]


class Collection:
    """Every change is durable first, then visible; what it leaves out is then unmapped and gone from the disk.

    Changes take the lock; who computes one from what the collection holds takes it before it looks."""

    def __init__(self, folder: CollectionFolder, held: Sequence[Held], show: Show) -> None:
        self.folder = folder
        self.held = tuple(held)
        self.lock = threading.RLock()
        self.removed = False
        self._show = show
        manifest = folder.manifest
        self.owner = Namespace(manifest.tenant, manifest.model, adapter=manifest.adapter)

    def __str__(self) -> str:
        return str(self.folder.manifest)

    @property
    def tokens(self) -> int:
        return sum(held.file.tokens for held in self.held)

    @property
    def memory(self) -> int:
        """Bytes of its segments."""
        return sum(held.charge.kept for held in self.held)

    def show(self) -> None:
        """Lets drafts read what it holds."""
        self._show(mapped(self.held), False)

    def add(self, fresh: Fresh | None, **changes: Any) -> bool:
        """Behind all others; `changes` are of the manifest. With a `generation`, it is made of the frozen head.

        False: the collection was removed meanwhile."""
        with self.lock:
            if not self.removed:
                self._become(self.held, fresh, len(self.held), changes)
            return not self.removed

    def replace(self, old: Sequence[Held], fresh: Fresh | None, **changes: Any) -> bool:
        """Puts a rebuilt segment in the place of those it was made of; None: nothing was left of them.

        False: the collection was removed meanwhile."""
        with self.lock:
            if not self.removed:
                place = self.held.index(old[0]) if old else 0
                self._become([held for held in self.held if held not in old], fresh, place, changes)
            return not self.removed

    @contextmanager
    def unmapped(self, held: Held) -> Iterator[None]:
        """Drafts do without this segment, and it takes no memory, until the context is left or it is replaced."""
        with self.lock:
            kept, held.segment = held.charge.kept, None
            self.show()
            held.charge.release()
        try:
            yield
        finally:
            with self.lock:
                if held in self.held:
                    held.charge.hold(kept)
                    held.segment = map_segment(self.folder.file(held.file), held.file)
                    self.show()

    def release(self) -> None:
        """Unmaps everything, after drafts stopped reading it."""
        charges = [held.charge for held in self.held]
        self.held = ()
        for charge in charges:
            charge.release()

    def _become(self, others: Sequence[Held], fresh: Fresh | None, place: int, changes: dict[str, Any]) -> None:
        held = list(others)
        if fresh is not None:
            name = fresh_segment_name()
            held.insert(place, fresh.held_as(name))
            self.folder.adopt(fresh.path, name)
        changes["segments"] = tuple(each.file for each in held)
        self.folder.commit(self.folder.manifest.model_copy(update=changes))
        if fresh is not None:
            fresh.adopted = True
        self._show(mapped(held), "generation" in changes)
        # Counted until the last reference is gone, which is here: the engine has let go of them.
        charges = [each.charge for each in self.held if each not in held]
        self.held = tuple(held)
        for charge in charges:
            charge.release()
