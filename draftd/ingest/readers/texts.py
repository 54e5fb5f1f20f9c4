"""Plain text: one file is one document; a folder holds as many as there are files below it."""

import codecs
import os
from pathlib import Path
from typing import IO, NoReturn

from draftd.ingest.documents import Text
from draftd.ingest.labels import checked_label
from draftd.ingest.problem import IngestError
from draftd.ingest.readers.limits import LONGEST_TEXT


def text_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted, but for hidden ones; links are not followed. Raises IngestError."""

    def fail(error: OSError) -> NoReturn:
        place = Path(error.filename).relative_to(folder).as_posix()
        raise IngestError(f"{place}: {(error.strerror or str(error)).lower()}") from None

    found = []
    for here, folders, files in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(here, name) for name in sorted(files) if not name.startswith("."))
        found += [path for path in paths if not path.is_symlink() and path.is_file()]
    return found


def read_text(place: str, file: IO[bytes], label: str) -> Text:
    """All of a file; `label` is its id. Raises IngestError."""
    return Text(place, _content(place, file), checked_label(place, label))


def _content(place: str, file: IO[bytes]) -> str:
    content = file.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise IngestError(f"{place} is longer than {LONGEST_TEXT} bytes; make several documents of it")
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise IngestError(f"{place} is not UTF-8 at byte {error.start}") from None
