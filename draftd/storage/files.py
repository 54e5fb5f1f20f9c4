"""File operations whose effect survives a crash of the process or of the machine.

A name is on the disk once its folder is synced; what a file holds, once the file is. Every function here returns when
its effect is there, and a crash within it leaves the state before or the state after.
"""

import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import IO

UNFINISHED = ".unfinished"  # ending of files that were not renamed into place yet


def write_file(path: Path, content: bytes) -> None:
    """Puts a whole file into place, instead of one that may be there."""
    unfinished = path.with_name(path.name + UNFINISHED)
    with unfinished.open("wb") as file:
        file.write(content)
        sync_file(file)
    move(unfinished, path)


def move(source: Path, target: Path) -> None:
    """Renames, on one file system; what the file holds must be synced already."""
    os.rename(source, target)  # noqa: PTH104 - this module is where a crash can come between two calls of os
    sync_folder(target.parent)
    if source.parent != target.parent:
        sync_folder(source.parent)


def make_folder(path: Path) -> None:
    os.mkdir(path, 0o700)  # noqa: PTH102
    sync_folder(path.parent)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Their bytes go with the last process that has them open or mapped."""
    for name in names:
        os.unlink(folder / name)  # noqa: PTH108
    sync_folder(folder)


def remove_folder(path: Path, scratch: Path) -> None:
    """First it leaves its place whole, then it is removed; `scratch` is emptied at every start."""
    leaving = scratch / uuid.uuid4().hex
    move(path, leaving)
    shutil.rmtree(leaving)


def sync_file(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
