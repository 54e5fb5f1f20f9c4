"""The file of a sealed segment, read as docs/segment-format.md says, without looking for damage.

`draftd.native.Segment` maps the same file and believes nothing in it that it has not checked.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

HEADER_BYTES = 320
SECTIONS = (
    "document ends",
    "document times",
    "label ends",
    "labels",
    "text",
    "entries",
    "keys",
    "frequent tokens",
    "fingerprint",
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a section lies."""

    offset: int
    length: int
    checksum: int

    @property
    def padded_end(self) -> int:
        """The checksum reaches to here, and the next section starts."""
        return -(-(self.offset + self.length) // 64) * 64


class SegmentFile:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.magic, self.version, self.width, self.position_width, sections = struct.unpack_from("<8s4I", data)
        self.slots, self.documents, self.distinct_tokens, self.file_size = struct.unpack_from("<4Q", data, 24)
        self.places = {
            name: Place(*struct.unpack_from("<3Q", data, 56 + 24 * number))
            for number, name in enumerate(SECTIONS[:sections])
        }
        (self.header_checksum,) = struct.unpack_from("<Q", data, HEADER_BYTES - 8)

    def section(self, name: str) -> bytes:
        place = self.places[name]
        return self._data[place.offset : place.offset + place.length]

    @property
    def stream(self) -> list[int]:
        """Symbols: a token's id + 1, and 0 for the separators."""
        return list(_packed_numbers(self.section("text"), self.slots, self.width))

    @property
    def entries(self) -> list[int]:
        tokens = self.slots - self.documents - 1
        return list(_packed_numbers(self.section("entries"), tokens, self.position_width))

    @property
    def keys(self) -> list[int]:
        return [key for (key,) in struct.iter_unpack("<Q", self.section("keys"))]

    @property
    def document_ends(self) -> list[int]:
        """Slots of the separators behind the documents."""
        return [end for (end,) in struct.iter_unpack("<I", self.section("document ends"))]

    @property
    def times(self) -> list[int]:
        return [time for (time,) in struct.iter_unpack("<q", self.section("document times"))]

    @property
    def labels(self) -> list[str]:
        ends = [end for (end,) in struct.iter_unpack("<I", self.section("label ends"))]
        labels = self.section("labels")
        return [labels[start:end].decode() for start, end in pairwise([0, *ends])]

    @property
    def frequent_tokens(self) -> list[tuple[int, int]]:
        return list(struct.iter_unpack("<iI", self.section("frequent tokens")))

    @property
    def fingerprint(self) -> str:
        return self.section("fingerprint").decode()


def _packed_numbers(packed: bytes, count: int, width: int) -> Iterator[int]:
    """The first number is in the lowest bits of the first byte."""
    for bit in range(0, count * width, width):
        word = int.from_bytes(packed[bit // 8 : bit // 8 + 8], "little")
        yield word >> bit % 8 & ((1 << width) - 1)
