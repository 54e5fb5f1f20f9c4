"""A folder whose disk fails, or whose machine loses power, at a chosen file operation.

After a loss of power, what was not synced is there, or not, or in part."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from draftd.storage import files, journal

Choose = Callable[[int], int]  # a number in [0, n]


class Crash(BaseException):
    """The machine is off."""


class Fault(Enum):
    """What becomes of a chosen operation, and of those behind it."""

    POWER = auto()
    ONE = auto()  # it alone fails
    LASTING = auto()


class CrashingDisk:
    """Stands in for the `os` and `shutil` of the storage room below `root`, and remembers what was synced."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._left = 0
        self._fault = Fault.POWER
        self._held: dict[int, int] = {}  # inode to an open descriptor, which keeps the number from being used again
        self._entries: dict[int, dict[str, int]] = {}  # of folders, when they were last synced
        self._contents: dict[int, bytes] = {}  # of files, likewise
        self._remember_all()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @contextmanager
    def failing_after(self, operations: int, fault: Fault) -> Iterator[None]:
        """Raises Crash within, or OSErrors, at the operation behind so many."""
        self._left, self._fault = operations, fault
        with pytest.MonkeyPatch.context() as patch:
            for module in (files, journal):
                assert isinstance(module, ModuleType)
                patch.setattr(module, "os", self)
            patch.setattr(files, "shutil", self)
            yield

    @property
    def failed(self) -> bool:
        """Whether there were so many operations."""
        return self._left < 0

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        if target.exists():
            self._hold(target)
        self._hold(source)
        os.rename(source, target)  # noqa: PTH104

    def unlink(self, path: Path) -> None:
        self._count()
        self._hold(path)
        os.unlink(path)  # noqa: PTH108

    def mkdir(self, path: Path, mode: int) -> None:
        self._count()
        os.mkdir(path, mode)  # noqa: PTH102
        self._entries[self._hold(path)] = {}

    def fsync(self, descriptor: int) -> None:
        self._count()
        self._sync(Path(f"/proc/self/fd/{descriptor}"))

    def open(self, path: Path, flags: int) -> int:
        self._count()
        return os.open(path, flags)

    def listdir(self, path: Path) -> list[str]:
        self._count()
        return os.listdir(path)  # noqa: PTH208

    def rmtree(self, path: Path) -> None:
        self._count()
        for entry in path.iterdir():
            self._hold(entry)
        shutil.rmtree(path)

    def restart_in(self, root: Path, choose: Choose) -> None:
        """Puts into a new folder what a start would find, of the folder as it is now or as it was synced."""
        self._rebuild(self._hold(self.root), root, choose)

    def forget(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)

    def _count(self) -> None:
        self._left -= 1
        if self._left == -1 or (self._left < 0 and self._fault is Fault.LASTING):
            if self._fault is Fault.POWER:
                raise Crash
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _hold(self, path: Path) -> int:
        number = path.stat().st_ino
        if number not in self._held:
            self._held[number] = os.open(path, os.O_RDONLY)
        return number

    def _sync(self, path: Path) -> None:
        number = self._hold(path)
        if path.is_dir():
            self._entries[number] = {entry.name: self._hold(entry) for entry in path.iterdir()}
        else:
            self._contents[number] = path.read_bytes()

    def _remember_all(self) -> None:
        for path in (self.root, *self.root.rglob("*")):
            self._sync(path)

    def _rebuild(self, number: int, target: Path, choose: Choose) -> None:
        source = Path(f"/proc/self/fd/{self._held[number]}")
        if stat.S_ISREG(source.stat().st_mode):
            target.write_bytes(self._survivor(self._contents.get(number, b""), source.read_bytes(), choose))
            return
        target.mkdir(exist_ok=True)
        now = {entry.name: self._hold(entry) for entry in source.iterdir()}
        entries = now if choose(1) else self._entries.get(number, {})
        for name, child in sorted(entries.items()):
            self._rebuild(child, target / name, choose)

    def _survivor(self, synced: bytes, now: bytes, choose: Choose) -> bytes:
        """Of what was appended since, any part; of a cut, the length before or after."""
        if len(now) < len(synced):
            return now if choose(1) else synced
        return now[: len(synced) + choose(len(now) - len(synced))]
