"""One collection: its folder, the segments mapped from it, and how it changes."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from draftd.corpora.problem import OverLimit
from draftd.corpora.segments import Fresh, Held, map_charged, mapped
from draftd.native import Segment
from draftd.observe import facts
from draftd.storage import CollectionFolder, fresh_segment_name
from draftd.wire import Namespace

# Makes segments, oldest first, what drafts read. True: they now have what was in the frozen head of a history.
Show = Callable[[Sequence[Segment], bool], None]


class Collection:
    """Every change is durable first, then visible; what it leaves out is then unmapped and gone from the disk.

    A change that raises was not made. From its manifest on it is made, and what fails then is a log line and is done by
    the next `settle`, which all who must not go on without it call.

    Changes take the lock; who computes one from what the collection holds takes it before it looks."""

    def __init__(self, folder: CollectionFolder, held: Sequence[Held], show: Show) -> None:
        self.folder = folder
        self.held = tuple(held)
        self.lock = threading.RLock()
        self.removed = False
        self._show = show
        self.shown = False  # drafts read what it holds
        self._sealed = False  # what is not shown yet takes the place of a frozen head
        self._leaving: list[Held] = []  # what drafts read until it is shown
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

    def publish(self) -> None:
        """On return what it holds is on the disk, and what drafts read. Raises OSError, or what the engine raises."""
        with self.lock:
            if self.removed:
                return
            self.folder.sync()
            if not self.shown:
                self._show(mapped(self.held), self._sealed)
                self.shown, self._sealed = True, False
                _unmap(self._leaving)

    def settle(self) -> None:
        """Publishes, and on return no file of it has anything else. Raises as `publish`."""
        with self.lock:
            if not self.removed:
                self.publish()
                self.folder.clean()

    def add(self, fresh: Fresh | None, **changes: Any) -> bool:
        """Behind all others; `changes` are of the manifest. With a `generation`, it is made of the frozen head.

        False: the collection was removed meanwhile."""
        with self.lock:
            if not self.removed:
                self._insert(self.held, fresh, len(self.held), changes)
            return not self.removed

    def replace(self, old: Sequence[Held], fresh: Fresh | None, **changes: Any) -> bool:
        """Puts a rebuilt segment in the place of those it was made of; None: nothing was left of them.

        False: the collection was removed meanwhile."""
        with self.lock:
            if not self.removed:
                place = self.held.index(old[0]) if old else 0
                self._insert([held for held in self.held if held not in old], fresh, place, changes)
            return not self.removed

    def add_before(self, held: Sequence[Held], files: Mapping[str, Path]) -> None:
        """Before all others: files of these names, mapped already."""
        with self.lock:
            self._become((*held, *self.held), files, {})

    def drop(self, gone: Sequence[Held]) -> None:
        """Those of them that it has."""
        with self.lock:
            if old := [held for held in self.held if held in gone]:
                self.replace(old, None)

    @contextmanager
    def unmapped(self, held: Held) -> Iterator[None]:
        """Drafts do without this segment, and it takes no memory, until the context is left or it is replaced."""
        with self.lock:
            held.segment = None
            self._show_anew()
            held.charge.release()
        try:
            yield
        finally:
            with self.lock:
                if held in self.held:
                    self._map(held)

    def map_all(self) -> None:
        """Lets drafts read again what there was no room for when it was to be mapped again.

        Raises OverLimit, OSError, DamagedError."""
        with self.lock:
            for held in self.held:
                if held.segment is None:
                    self._map(held)

    def release(self) -> None:
        """Unmaps everything, after drafts stopped reading it."""
        leaving = [*self.held, *self._leaving]
        self.held = ()
        _unmap(leaving)

    def _insert(self, others: Sequence[Held], fresh: Fresh | None, place: int, changes: dict[str, Any]) -> None:
        held, files = list(others), {}
        if fresh is not None:
            name = fresh_segment_name()
            held.insert(place, fresh.held_as(name))
            files[name] = fresh.path
        self._become(held, files, changes)
        if fresh is not None:
            fresh.adopted = True

    def _become(self, held: Sequence[Held], files: Mapping[str, Path], changes: dict[str, Any]) -> None:
        for name, path in files.items():
            self.folder.adopt(path, name)
        changes["segments"] = tuple(each.file for each in held)
        self.folder.commit(self.folder.manifest.model_copy(update=changes))
        self._leaving += [each for each in self.held if each not in held]
        self.held = tuple(held)
        self.shown, self._sealed = False, self._sealed or "generation" in changes
        try:
            self.settle()
        except Exception as error:  # noqa: BLE001 - the change is made, whatever fails now
            facts.change_unfinished(str(self), error)

    def _map(self, held: Held) -> None:
        try:
            held.segment = map_charged(self.folder.file(held.file), held.file, held.charge)
        except OverLimit:
            facts.undrafted(str(self), held.file.tokens)
            raise
        self._show_anew()

    def _show_anew(self) -> None:
        self.shown = False
        self.publish()


def _unmap(leaving: list[Held]) -> None:
    """Counted until the last reference is gone, which is here: the engine has let go of them."""
    while leaving:
        held = leaving.pop()
        held.segment = None
        held.charge.release()
