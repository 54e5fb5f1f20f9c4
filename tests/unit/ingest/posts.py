"""Helpers: what clients post and files hold, put through the work of the loader process."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from draftd.ingest import (
    SEGMENT,
    Built,
    CorpusKey,
    KnownTokenizer,
    LoadColumns,
    LoadFile,
    LoadJob,
    LoadPost,
    LoadRequest,
    LoadUpload,
    Opened,
)
from draftd.ingest.reporting import Reporter
from draftd.ingest.tokenizers import open_tokenizer
from draftd.ingest.work import load
from draftd.native import Segment

KEY = CorpusKey(tenant="t", model="m", adapter="", corpus_id="c")


class Listener(Reporter):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Any] = []

    def say(self, line: Any) -> None:
        self.said.append(line)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a load."""

    opened: Opened
    built: Built
    documents: list[list[int]]
    labels: list[str]
    segment: Segment = field(repr=False)


def load_request(
    folder: Path,
    request: LoadRequest,
    *,
    max_tokens: int = 1000,
    tokenizers: tuple[KnownTokenizer, ...] = (),
) -> Result:
    """Leaves no segment in the folder."""
    listener = Listener()
    job = LoadJob(request=request, max_tokens=max_tokens, tokenizers=tokenizers, result=folder)
    built = load(job, 1, listener)
    segment = Segment.open(folder / SEGMENT)
    (folder / SEGMENT).unlink()
    documents = np.split(segment.token_ids(), segment.document_ends()[:-1])
    opened = next(line for line in listener.said if isinstance(line, Opened))
    return Result(opened, built, [document.tolist() for document in documents], segment.labels(), segment)


def load_post(
    folder: Path, body: dict[str, Any] | bytes, *, directories: tuple[Path, ...] = (), **options: Any
) -> Result:
    """What became of a posted body."""
    file = folder / "body.json"
    file.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
    return load_request(folder, LoadRequest(key=None, source=LoadPost(body=file, directories=directories)), **options)


def load_path(path: Path, folder: Path, **options: Any) -> Result:
    """What became of a file or folder that the operator named."""
    return load_request(folder, LoadRequest(key=KEY, source=LoadFile(path=path)), **options)


def load_upload(folder: Path, name: str, body: bytes, **options: Any) -> Result:
    """What became of a body that a client streamed."""
    (folder / "body").write_bytes(body)
    return load_request(folder, LoadRequest(key=KEY, source=LoadUpload(body=folder / "body", name=name)), **options)


def load_columns(columns: Path, folder: Path, **options: Any) -> Result:
    """What became of packed columns."""
    return load_request(folder, LoadRequest(key=KEY, source=LoadColumns(folder=columns)), **options)


def word_tokenizer(folder: Path, words: str = "the cat sat on a mat") -> Path:
    """A real tokenizer.json: one id per word, 0 for unknown ones."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"[UNK]": 0} | {word: number for number, word in enumerate(words.split(), start=1)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    file = folder / "tokenizer.json"
    tokenizer.save(str(file))
    return file


def known(path: Path, tenant: str = "*", model: str = "*") -> KnownTokenizer:
    opened = open_tokenizer(path)
    return KnownTokenizer(
        tenant=tenant,
        model=model,
        path=path,
        fingerprint=opened.fingerprint,
        vocabulary_size=opened.vocabulary_size,
    )
