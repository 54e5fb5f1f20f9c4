"""The JSON body of a posted corpus. Field names are those that SGLang's clients send, and a few of ours."""

import difflib
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from draftd.ingest.confinement import open_below
from draftd.ingest.documents import Ids, Piece, Text
from draftd.ingest.job import CorpusKey
from draftd.ingest.problem import IngestError
from draftd.ingest.readers import Position, ReadLimits, read_file
from draftd.wire import Namespace

_SOURCES = ("file_path", "documents", "token_chunks")
_ADDRESS = ("tenant", "model", "adapter", "tokenizer", "corpus_id")


class PostedCorpus:
    """A checked body: whose corpus it is, and its documents."""

    def __init__(self, body: bytes, directories: tuple[Path, ...]) -> None:
        """Raises IngestError for everything that can be said without reading the documents."""
        self._directories = directories
        self._fields = json_object(body)
        refuse_unknown_fields(self._fields, (*_ADDRESS, *_SOURCES))
        self.key = corpus_key(self._fields)
        self.tokenizer = owner(self._fields).tokenizer
        given = [source for source in _SOURCES if self._fields.get(source) is not None]
        if len(given) != 1:
            raise IngestError(f"give exactly one of {', '.join(_SOURCES)}; given: {', '.join(given) or 'none'}")

    def documents(self, limits: ReadLimits, position: Position) -> Iterator[Piece]:
        file_path = string_field(self._fields, "file_path", None)
        if file_path is not None:
            with open_below(self._directories, file_path) as file:
                position.expect(os.fstat(file.fileno()).st_size)
                position.watch(file)
                yield from read_file(file_path, file, limits, label=Path(file_path).name)
            return
        for number, text in enumerate(self._list("documents")):
            if not isinstance(text, str):
                raise IngestError(f"document {number}: should be a string; ids belong into token_chunks")
            yield Text(f"document {number}", text)
        for number, ids in enumerate(self._list("token_chunks")):
            if not isinstance(ids, list):
                raise IngestError(f"document {number}: should be a list of token ids")
            yield Ids(_integers(f"document {number}", ids), np.array([len(ids)]), _always(f"document {number}"))

    def _list(self, name: str) -> list[Any]:
        value = self._fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise IngestError(f"{name}: should be a list")
        return value


def json_object(body: bytes) -> dict[str, Any]:
    """Parses a body. Raises IngestError."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise IngestError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise IngestError("the body should be a JSON object")
    return fields


def refuse_unknown_fields(fields: dict[str, Any], known: tuple[str, ...]) -> None:
    """A misspelt `tenant` must not put text into the default tenant. Raises IngestError."""
    for name in fields:
        if name not in known:
            near = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.0)[0]  # of a megabyte: 0.3 s
            raise IngestError(f"field {_short(name)} is unknown; the nearest is {near!r}")


Default = TypeVar("Default", str, None)


def string_field(fields: dict[str, Any], name: str, default: Default) -> str | Default:
    """A field that is absent or null has its default; an empty string is no default. Raises IngestError."""
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise IngestError(f"{name}: should be a string")
    if not value.isprintable():  # it is written to logs and replies, a line each
        raise IngestError(f"{name}: {value!a} has characters that can't be printed")
    return value


def corpus_key(fields: dict[str, Any]) -> CorpusKey:
    """Whose corpus a body means; an absent corpus_id is generated. Raises IngestError."""
    corpus_id = string_field(fields, "corpus_id", uuid.uuid4().hex)
    if not corpus_id:
        raise IngestError("the id of the corpus, corpus_id, is empty")
    namespace = owner(fields)
    return CorpusKey(tenant=namespace.tenant, model=namespace.model, adapter=namespace.adapter, corpus_id=corpus_id)


def owner(fields: dict[str, Any]) -> Namespace:
    """The namespace a body or query names. Raises IngestError."""
    try:
        return Namespace(
            tenant=string_field(fields, "tenant", "default"),
            model=string_field(fields, "model", "default"),
            tokenizer=string_field(fields, "tokenizer", None),
            adapter=string_field(fields, "adapter", ""),
        )
    except ValueError as error:
        raise IngestError(str(error)) from None


def _integers(place: str, ids: list[Any]) -> NDArray[np.int64]:
    # bool is an int to Python and to numpy, but no token id.
    if set(map(type, ids)) <= {int}:
        try:
            return np.array(ids, np.int64)
        except OverflowError:
            pass
    for at, value in enumerate(ids):
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise IngestError(f"{place}, token {at}: {_short(value)} is no token id")
    raise AssertionError("unreachable: all are integers of 64 bits")


def _always(place: str) -> Callable[[int], str]:
    return lambda _: place


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
