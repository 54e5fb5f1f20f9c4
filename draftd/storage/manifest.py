"""The manifest of a collection: whose it is, and the files that belong to it. What it doesn't name does not exist."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from draftd.storage.files import write_file
from draftd.storage.problem import DamagedError, VersionError
from draftd.wire import Namespace

VERSION: Literal[1] = 1  # of all that a folder holds: segments and journals of another format have another here
MANIFEST = "manifest.json"
SEGMENT_NAME = r"^[0-9a-f]{32}\.segment$"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SegmentFile(_Part):
    """A segment in the folder of its collection. Times are those of its documents, unix seconds."""

    file: Annotated[str, Field(pattern=SEGMENT_NAME)]
    bytes: NonNegativeInt
    tokens: NonNegativeInt
    documents: NonNegativeInt
    oldest: int
    newest: int


class Manifest(_Part):
    """`name` is the id of a corpus, or the group of a history, whose own has none.

    Documents of a history that are in no segment yet lie in journals, from `generation` on."""

    version: Literal[1] = VERSION
    kind: Literal["corpus", "history"]
    tenant: str
    model: str
    adapter: str
    tokenizers: Annotated[tuple[str | None, ...], Field(min_length=1)]
    name: str
    source: str = ""  # the configured file it was loaded from, in the state it was in
    segments: tuple[SegmentFile, ...] = ()  # oldest first
    generation: NonNegativeInt = 0

    @model_validator(mode="after")
    def _names_are_fit(self) -> Self:
        self.namespaces()  # raises for names that no namespace has
        if not self.name.isprintable() or (self.kind == "corpus" and not self.name):
            raise ValueError(f"{self.kind}: {self.name!a} is no name")
        if self.kind == "history" and len(self.tokenizers) > 1:
            raise ValueError("tokenizers: a history has one")
        if len({segment.file for segment in self.segments}) < len(self.segments):
            raise ValueError("segments: a file is named twice")
        return self

    def namespaces(self) -> tuple[Namespace, ...]:
        """Where drafts may read it."""
        return tuple(Namespace(self.tenant, self.model, tokenizer, self.adapter) for tokenizer in self.tokenizers)

    @property
    def key(self) -> tuple[str, ...]:
        """No two collections have the same."""
        tokenizer = () if self.kind == "corpus" else (self.tokenizers[0] or "",)
        return (self.kind, self.tenant, self.model, self.adapter, self.name, *tokenizer)

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} of {self.namespaces()[0]}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """From here on this is what the collection is; on the disk, once the folder is synced."""
    content = manifest.model_dump(mode="json")
    document = {"sha256": _digest(content), "manifest": content}
    write_file(folder / MANIFEST, json.dumps(document, indent=1).encode())


def read_manifest(folder: Path) -> Manifest:
    """Raises DamagedError, VersionError."""
    path = folder / MANIFEST
    try:
        document = json.loads(path.read_bytes())
        content, digest = document["manifest"], document["sha256"]
    except FileNotFoundError:
        raise DamagedError(f"{path}: is missing") from None
    except (ValueError, RecursionError, TypeError, KeyError):
        raise DamagedError(f"{path}: is no manifest") from None
    if digest != _digest(content):
        raise DamagedError(f"{path}: its checksum is wrong")
    try:
        return parse_manifest(content)
    except DamagedError as error:
        raise type(error)(f"{path}: {error}") from None


def parse_manifest(content: Any) -> Manifest:
    """Raises DamagedError, VersionError."""
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise VersionError(f"version {version!r} of the manifest; this draftd reads {VERSION}")
    try:
        return Manifest.model_validate_json(json.dumps(content))  # strict, and yet a list is a tuple
    except ValidationError as error:
        first = error.errors()[0]
        raise DamagedError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
