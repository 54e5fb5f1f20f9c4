"""The bytes printed in docs/segment-format.md are those of the file that is described there."""

import re
from pathlib import Path

import numpy as np

from draftd.native import SegmentBuilder

PAGE = Path(__file__).parents[2] / "docs" / "segment-format.md"


def printed_bytes(size: int) -> bytes:
    """Lines of an offset, bytes and, after two spaces, a comment."""
    block = re.search(r"<!-- example: segment -->\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    file = bytearray(size)
    for line in block[1].splitlines():
        offset, content = line.split(": ", 1)
        shown = bytes.fromhex(content.split("  ")[0])
        file[int(offset, 16) : int(offset, 16) + len(shown)] = shown
    return bytes(file)


def test_the_printed_file_is_the_one_that_is_written(tmp_path: Path) -> None:
    builder = SegmentBuilder("fp")
    builder.add(np.array([1, 2, 1, 2, 3, 2, 1, 2], np.int32), np.array([5, 8]), ["first", ""], np.array([5, -6]))
    builder.write(tmp_path / "segment")
    written = (tmp_path / "segment").read_bytes()
    assert printed_bytes(len(written)) == written
