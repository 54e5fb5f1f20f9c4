"""What the server and its loader process say to each other, as JSON."""

from collections.abc import Container
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from draftd.ingest.problem import IngestError
from draftd.wire import Namespace


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

    def refuse_if_in(self, taken: Container["CorpusKey"]) -> None:
        """Raises IngestError if there is such a corpus."""
        if self in taken:
            raise IngestError(f"corpus {self} exists already; remove it first")

    def __str__(self) -> str:
        return f"{self.corpus_id!r} of {Namespace(self.tenant, self.model, adapter=self.adapter)}"


class LoadFile(_Message):
    """Load a file that the operator named."""

    key: CorpusKey
    path: Path


class LoadPost(_Message):
    """Load what a client posted: `body` is a file with the JSON. A file_path in it must lie below `directories`."""

    body: Path
    directories: tuple[Path, ...]


class LoadJob(_Message):
    """Read, check and tokenize a corpus, and leave its columns in the folder `result`.

    A corpus of `taken` is refused before its documents are read: only here the id of a post becomes known."""

    source: LoadFile | LoadPost
    max_tokens: int
    tokenizers: tuple[KnownTokenizer, ...]
    result: Path
    taken: tuple[CorpusKey, ...] = ()


class Loaded(_Message):
    """The columns of a corpus lie in the job's folder. `namespaces` says where it belongs."""

    key: CorpusKey
    tokens: int
    tokenizers: tuple[str | None, ...]  # of the namespaces it belongs to; None: the one where none is stated

    def namespaces(self) -> tuple[Namespace, ...]:
        return tuple(
            Namespace(self.key.tenant, self.key.model, tokenizer, self.key.adapter) for tokenizer in self.tokenizers
        )


class DescribeJob(_Message):
    """Read tokenizer files."""

    paths: tuple[Path, ...]


class Described(_Message):
    """Fingerprint and vocabulary size of each, in the order of the paths."""

    tokenizers: tuple[tuple[str, int], ...]


class Job(_Message):
    """What the loader process gets on its standard input."""

    job: LoadJob | DescribeJob


class Outcome(_Message):
    """What it answers on its standard output. `problem` is for who gave the corpus, or configured the tokenizer."""

    result: Loaded | Described | None = None
    problem: str | None = None
