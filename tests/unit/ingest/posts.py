"""Helpers: posts as clients send them, put through the work of the loader process."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from draftd.ingest import KnownTokenizer, Loaded, LoadJob, LoadPost, TokenColumns
from draftd.ingest.tokenizers import open_tokenizer
from draftd.ingest.work import load


def load_post(
    folder: Path,
    body: dict[str, Any] | bytes,
    *,
    max_tokens: int = 1000,
    directories: tuple[Path, ...] = (),
    tokenizers: tuple[KnownTokenizer, ...] = (),
) -> tuple[Loaded, list[list[int]]]:
    """What became of a posted body, and its documents as ids."""
    file = folder / "body.json"
    file.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
    source = LoadPost(body=file, directories=directories)
    loaded = load(LoadJob(source=source, max_tokens=max_tokens, tokenizers=tokenizers, result=folder))
    columns = TokenColumns.saved_in(folder)
    documents = np.split(np.asarray(columns.token_ids), columns.document_ends[:-1])
    return loaded, [document.tolist() for document in documents]


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
