"""File operations whose effect survives a crash of the process or of the machine.

What a file holds is on the disk once the file is synced; which names a folder has, once the folder is. A crash within a
function leaves the state before or the state after, and so does an error.
"""

import os
import shutil
from pathlib import Path
from typing import IO

UNFINISHED = ".unfinished"  # ending of files that were not renamed into place yet


def write_file(path: Path, content: bytes) -> None:
    """Puts a whole file into place, instead of one that may be there. The folder is not synced."""
    unfinished = path.with_name(path.name + UNFINISHED)
    with unfinished.open("wb") as file:
        file.write(content)
        sync_file(file)
    rename(unfinished, path)


def move(source: Path, target: Path) -> None:
    """Renames, on one file system; what the file holds must be synced already."""
    rename(source, target)
    sync_folder(target.parent)


def rename(source: Path, target: Path) -> None:
    """Not synced."""
    os.rename(source, target)  # noqa: PTH104 - this module is where a crash can come between two calls of os


def link(source: Path, target: Path) -> None:
    """A second name of a file."""
    os.link(source, target)
    sync_folder(target.parent)


def make_folder(path: Path) -> None:
    """Not synced."""
    os.mkdir(path, 0o700)  # noqa: PTH102


def names_in(folder: Path) -> list[str]:
    return os.listdir(folder)  # noqa: PTH208


def remove_file(path: Path) -> None:
    """Not synced. Its bytes go with the last process that has it open or mapped."""
    os.unlink(path)  # noqa: PTH108


def remove_tree(path: Path) -> None:
    """Not synced. Whether it is there or not; after an error, some of it may be."""
    if path.exists():
        shutil.rmtree(path)


def sync_file(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
