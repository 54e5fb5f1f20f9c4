"""What the server and its loader process say to each other, as lines of JSON."""

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from draftd.ingest.selection import Selection
from draftd.wire import Namespace

SEGMENT = "segment"  # the file that a job leaves in its folder `result`


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KnownTokenizer(_Message):
    """A configured tokenizer after it was read once. `tenant` and `model` may be `*`."""

    tenant: str
    model: str
    path: Path
    fingerprint: str
    vocabulary_size: int

    def serves(self, tenant: str, model: str) -> bool:
        return self.tenant in ("*", tenant) and self.model in ("*", model)


class CorpusKey(_Message):
    """Names a corpus: ids are unique within a tenant's model and adapter."""

    tenant: str
    model: str
    adapter: str
    corpus_id: str

    def __str__(self) -> str:
        return f"{self.corpus_id!r} of {Namespace(self.tenant, self.model, adapter=self.adapter)}"


class Mode(StrEnum):
    """What a load does to the corpus of its key."""

    ADD = "add"  # adds to it; makes it if there is none
    CREATE = "create"  # makes it; refused if there is one


class LoadFile(_Message):
    """Load what the operator named: a file, or a folder of texts."""

    kind: Literal["file"] = "file"
    path: Path


class LoadPost(_Message):
    """Load what a client posted as JSON: `body` is a file with it. A file_path in it must lie below `directories`."""

    kind: Literal["post"] = "post"
    body: Path
    directories: tuple[Path, ...]


class LoadUpload(_Message):
    """Load what a client streamed: `body` is a file with it; `name` ends like a file that holds the same."""

    kind: Literal["upload"] = "upload"
    body: Path
    name: str


class LoadColumns(_Message):
    """Load packed columns, which `columns.ColumnsWriter` left in a folder."""

    kind: Literal["columns"] = "columns"
    folder: Path


class LoadRequest(_Message):
    """Documents for one corpus. A post names its corpus itself: its `key` is None. `tokenizer`: the stated one."""

    key: CorpusKey | None
    tokenizer: str | None = None
    source: LoadFile | LoadPost | LoadUpload | LoadColumns
    mode: Mode = Mode.ADD


class LoadJob(_Message):
    """Read, check and tokenize documents, and leave a segment of them in the folder `result`."""

    kind: Literal["load"] = "load"
    request: LoadRequest
    max_tokens: int
    tokenizers: tuple[KnownTokenizer, ...]
    result: Path


class SealJob(_Message):
    """Make a segment of the packed columns in the folder `columns`, all of them: no limit, no vocabulary."""

    kind: Literal["seal"] = "seal"
    columns: Path
    fingerprint: str  # of the tokenizer; "": not stated
    result: Path


class RebuildJob(_Message):
    """Make one segment of the documents of several, oldest first, without those that `dropped` picks."""

    kind: Literal["rebuild"] = "rebuild"
    inputs: tuple[Path, ...]
    dropped: Selection | None
    result: Path


class DescribeJob(_Message):
    """Read tokenizer files."""

    kind: Literal["describe"] = "describe"
    paths: tuple[Path, ...]


class Job(_Message):
    """What the loader process gets on its standard input. It may tokenize in as many `processes`."""

    processes: int
    job: LoadJob | SealJob | RebuildJob | DescribeJob


class Opened(_Message):
    """First line of a load: whose documents they are. The time to refuse, before they are read."""

    kind: Literal["opened"] = "opened"
    key: CorpusKey
    tokenizers: tuple[str | None, ...]  # of the namespaces it belongs to; None: the one where none is stated

    def namespaces(self) -> tuple[Namespace, ...]:
        return tuple(
            Namespace(self.key.tenant, self.key.model, tokenizer, self.key.adapter) for tokenizer in self.tokenizers
        )


class Stage(StrEnum):
    """What a load is doing."""

    READING = "reading"  # parsing, tokenizing, checking
    BUILDING = "building"  # sorting and writing the segment


class Progress(_Message):
    """How far a job is; sent several times a second."""

    kind: Literal["progress"] = "progress"
    stage: Stage
    documents: int
    tokens: int
    label_bytes: int = 0
    bytes_read: int
    bytes_total: int  # 0: not known


class Built(_Message):
    """The segment lies in the job's folder as `SEGMENT`; with `tokens` 0 there is none, for nothing was left.

    `dropped`: labels of documents that were left out, if the selection names labels."""

    kind: Literal["built"] = "built"
    documents: int
    tokens: int
    dropped: frozenset[str] = frozenset()


class Described(_Message):
    """Fingerprint and vocabulary size of each, in the order of the paths."""

    kind: Literal["described"] = "described"
    tokenizers: tuple[tuple[str, int], ...]


class Refused(_Message):
    """The job can't be done; for who gave the documents, or configured the tokenizer."""

    kind: Literal["refused"] = "refused"
    problem: str
    too_large: bool = False


class Line(_Message):
    """One line of the loader process's standard output."""

    line: Opened | Progress | Built | Described | Refused


class Loaded(_Message):
    """What became of a load: `documents` and `tokens` are those it brought."""

    key: CorpusKey
    tokenizers: tuple[str | None, ...]
    documents: int
    tokens: int


class Ack(StrEnum):
    """How far a load must be before its caller hears of it."""

    RECEIVED = "received"  # everything has arrived; a restart forgets it
    DURABLE = "durable"  # it survives a restart
    VISIBLE = "visible"  # drafts use it

    def includes(self, other: "Ack") -> bool:
        """Who is this far has passed `other`."""
        levels = list(Ack)
        return levels.index(self) >= levels.index(other)
