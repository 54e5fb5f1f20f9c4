"""Lines of JSON: per line a string, or an object with `text` or `token_ids`, and perhaps an `id`."""

import codecs
from collections.abc import Iterator
from typing import IO, Annotated

import msgspec
import numpy as np

from draftd.ingest.documents import RUN_TOKENS, Ids, Piece, Text
from draftd.ingest.labels import checked_label
from draftd.ingest.problem import IngestError
from draftd.ingest.readers.limits import LONGEST_TEXT, ReadLimits

_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Object(msgspec.Struct, gc=False):
    """Other keys are left alone."""

    text: str | None = None
    token_ids: list[_Int64] | None = None
    id: str | int | None = None


_decoder = msgspec.json.Decoder(str | _Object)


def read_jsonl(file: IO[bytes], _limits: ReadLimits) -> Iterator[Piece]:
    """Blank lines are skipped. Raises IngestError."""
    run = _Run()
    number = 0
    while line := file.readline(LONGEST_TEXT + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) > LONGEST_TEXT:
            raise IngestError(f"line {number}: longer than {LONGEST_TEXT} bytes; make several documents of it")
        if line.isspace():
            continue
        document = _parsed(f"line {number}", line)
        if isinstance(document, Text):
            yield from run.taken()
            yield document
        else:
            run.add(number, document)
            if run.is_full():
                yield from run.taken()
    yield from run.taken()


class _Run:
    """Lines of token ids, to be handed on together."""

    def __init__(self) -> None:
        self._lines: list[int] = []
        self._token_ids: list[int] = []
        self._document_ends: list[int] = []
        self._labels: list[str] = []

    def add(self, line: int, document: _Object) -> None:
        self._lines.append(line)
        self._token_ids += document.token_ids or ()
        self._document_ends.append(len(self._token_ids))
        self._labels.append(_label(f"line {line}", document))

    def is_full(self) -> bool:
        # Each document costs something too: those without a token must not gather for ever.
        return len(self._token_ids) + len(self._lines) >= RUN_TOKENS // 8

    def taken(self) -> Iterator[Ids]:
        """What was added since the last call, if anything."""
        if self._lines:
            lines = self._lines
            yield Ids(
                np.array(self._token_ids, np.int64),
                np.array(self._document_ends, np.int64),
                lambda document: f"line {lines[document]}",
                self._labels,
            )
            self.__init__()  # type: ignore[misc]


def _parsed(place: str, line: bytes) -> Text | _Object:
    try:
        value = _decoder.decode(line)
    except msgspec.ValidationError as error:
        raise IngestError(f"{place}: {error}; {_SHOULD_BE}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise IngestError(f"{place}: not JSON: {error}") from None
    if isinstance(value, str):
        return Text(place, value)
    if (value.text is None) == (value.token_ids is None):
        raise IngestError(f"{place}: {_SHOULD_BE}")
    if value.text is None:
        return value
    return Text(place, value.text, _label(place, value))


def _label(place: str, document: _Object) -> str:
    return "" if document.id is None else checked_label(place, str(document.id))


_SHOULD_BE = 'a line should be a string, {"text": string} or {"token_ids": [ids]}, with an "id" if you like'
