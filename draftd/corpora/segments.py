"""Segments that are mapped, and what is known of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from draftd.corpora.ledger import Charge
from draftd.native import Segment, SegmentError
from draftd.storage import DamagedError, SegmentFile


@dataclass(eq=False, slots=True)
class Held:
    """A segment of a collection: its file, its mapping, and the bytes it is charged with."""

    file: SegmentFile
    segment: Segment | None  # None: unmapped while it is rebuilt without room for both
    charge: Charge


def mapped(held: Iterable[Held]) -> list[Segment]:
    return [each.segment for each in held if each.segment is not None]


@dataclass(slots=True)
class Fresh:
    """A segment that was just built, in a scratch file, and belongs to no collection until it is `adopted`."""

    path: Path
    segment: Segment
    charge: Charge
    adopted: bool = False

    def held_as(self, name: str) -> Held:
        """What a collection holds that has the file under this name. To be asked before the file is moved."""
        return Held(describe(self.segment, name, self.path.stat().st_size), self.segment, self.charge)


def describe(segment: Segment, name: str, size: int) -> SegmentFile:
    """What a manifest says of a segment in a file of that name and size."""
    times = segment.times()
    return SegmentFile(
        file=name,
        bytes=size,
        tokens=segment.tokens,
        documents=segment.documents,
        oldest=int(times.min()),
        newest=int(times.max()),
    )


def map_charged(path: Path, file: SegmentFile, charge: Charge) -> Segment:
    """As `map_segment`; the charge then holds its bytes. Raises OverLimit too; after an error it holds none."""
    try:
        charge.hold(file.bytes)
        segment = map_segment(path, file)
        charge.hold(segment.memory_size)
    except BaseException:
        charge.release()
        raise
    return segment


def map_segment(path: Path, file: SegmentFile) -> Segment:
    """Opens a file and holds it against its manifest. Raises DamagedError, or OSError when the system can't map it."""
    try:
        segment = Segment.open(path)
    except FileNotFoundError:
        raise DamagedError(f"{path}: is missing") from None
    except SegmentError as error:
        raise DamagedError(str(error)) from None
    if describe(segment, file.file, path.stat().st_size) != file:
        raise DamagedError(f"{path}: its manifest has another file of this name")
    return segment
