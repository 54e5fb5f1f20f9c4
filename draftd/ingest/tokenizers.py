"""Tokenizers: text to ids, and the fingerprint that says which ids they are."""

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from draftd.ingest.problem import IngestError

INSTALL = "install it with: pip install 'draftd[text]'"


class Tokenizer(Protocol):
    """What the readers need of a tokenizer. No special tokens are added to a text."""

    vocabulary_size: int
    fingerprint: str

    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...
    def spell(self, ids: Sequence[int]) -> list[str]:
        """What each id stands for in the middle of a text, by itself; bytes that are no character as U+FFFD."""


def fingerprint_of(vocabulary: Iterable[tuple[int, bytes]]) -> str:
    """Names a vocabulary: the sha256, in hex, of its (id, token) pairs in the order of the ids.

    A pair is hashed as the id and the token's length in bytes, two little-endian u32, and the token's bytes."""
    digest = hashlib.sha256()
    for token_id, token in sorted(vocabulary):
        digest.update(struct.pack("<II", token_id, len(token)))
        digest.update(token)
    return digest.hexdigest()


def open_tokenizer(path: Path) -> Tokenizer:
    """Reads a tokenizer.json or a tekken file; what is in it says which. Raises IngestError."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise IngestError(f"tokenizer {path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, RecursionError):
        raise IngestError(f"tokenizer {path}: not JSON; give a tokenizer.json or a tekken file") from None
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        return _JsonTokenizer(path)
    if isinstance(content, dict) and isinstance(content.get("vocab"), list) and "config" in content:
        return _Tekken(path)
    raise IngestError(f"tokenizer {path}: neither a tokenizer.json nor a tekken file")


class _JsonTokenizer:
    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ImportError:
            raise IngestError(f"tokenizer {path} needs the tokenizers package; {INSTALL}") from None
        try:
            self._library = Library.from_file(str(path))
        except Exception as error:  # noqa: BLE001 - the library raises bare Exception
            raise IngestError(f"tokenizer {path}: {error}") from None
        vocabulary = self._library.get_vocab(with_added_tokens=True)
        self.vocabulary_size = max(vocabulary.values(), default=-1) + 1
        self.fingerprint = fingerprint_of((token_id, token.encode()) for token, token_id in vocabulary.items())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._library.encode_batch_fast(texts, add_special_tokens=False)]

    def spell(self, ids: Sequence[int]) -> list[str]:
        # At its beginning a text may lose a space, so what counts is how it goes on with the same id.
        once = [self._library.decode([token], skip_special_tokens=False) for token in ids]
        twice = [self._library.decode([token, token], skip_special_tokens=False) for token in ids]
        return [pair.removeprefix(text) for text, pair in zip(once, twice, strict=True)]


class _Tekken:
    def __init__(self, path: Path) -> None:
        try:
            from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
            from mistral_common.tokens.tokenizers.tekken import Tekkenizer
        except ImportError:
            raise IngestError(f"tokenizer {path} needs the mistral-common package; {INSTALL}") from None
        try:
            self._library = Tekkenizer.from_file(path)
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise IngestError(f"tokenizer {path}: {error}") from None
        self._keep = SpecialTokenPolicy.KEEP
        self.vocabulary_size = self._library.n_words
        self.fingerprint = fingerprint_of(
            (token_id, self._library.id_to_byte_piece(token_id, self._keep)) for token_id in range(self.vocabulary_size)
        )

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._library.encode(text, bos=False, eos=False) for text in texts]

    def spell(self, ids: Sequence[int]) -> list[str]:
        return [self._library.id_to_byte_piece(token, self._keep).decode(errors="replace") for token in ids]
