"""Ids of one tokenizer are never taken for those of another, also when the settings change between two starts."""

from pathlib import Path
from typing import Any

import pytest

from draftd.ingest import IngestError
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE, Shelf, key
from tests.unit.ingest.posts import word_tokenizer

OLD, NEW = "the cat sat", "sat the cat on a mat"


def tokenizers(words: str, folder: Path) -> dict[str, Any]:
    """Settings."""
    folder /= words.replace(" ", "-")
    folder.mkdir(exist_ok=True)
    return {"tokenizers": [{"path": word_tokenizer(folder, words)}]}


def restart(shelf: Shelf, settings: dict[str, Any]) -> tuple[Namespace, Namespace]:
    """The namespaces of who states no tokenizer, and of who states that of the settings."""
    shelf.restart(**settings)
    (known,) = shelf.library._tokenizers
    return NAMESPACE, Namespace("acme", "m", known.fingerprint)


def published(shelf: Shelf, namespace: Namespace) -> set[str]:
    return set(shelf.engine.corpora.get(namespace, {}))


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
def test_a_configured_corpus_is_read_again_with_another_tokenizer(ending: str, shelf: Shelf, tmp_path: Path) -> None:
    file = tmp_path / f"docs.{ending}"
    file.write_text({"txt": "cat sat", "jsonl": '{"text": "cat sat"}\n'}[ending])
    restart(shelf, tokenizers(OLD, tmp_path))
    shelf.library.load_configured(key(), file)
    before = shelf.engine.corpus(NAMESPACE, "docs")
    plain, stated = restart(shelf, tokenizers(NEW, tmp_path))
    assert published(shelf, plain) == published(shelf, stated) == set(), "not even until it is read again"
    content = file.read_bytes()
    file.write_bytes(b"\xff")
    with pytest.raises(IngestError):
        shelf.library.load_configured(key(), file)
    assert shelf.library.token_counts(NAMESPACE) == {"docs": 2}, "what can't be read replaces nothing"
    file.write_bytes(content)
    shelf.library.load_configured(key(), file)
    assert shelf.engine.corpus(plain, "docs") == shelf.engine.corpus(stated, "docs") != before
    files = shelf.files(".segment")
    restart(shelf, tokenizers(NEW, tmp_path))
    shelf.library.load_configured(key(), file)
    assert shelf.files(".segment") == files, "it was not read a third time"
    shelf.restart(tokenizers=[])
    with pytest.raises(IngestError, match="tokenizer"):
        shelf.library.load_configured(key(), file)


def test_a_corpus_of_another_tokenizer_is_left_to_who_states_it(
    shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, old = restart(shelf, tokenizers(OLD, tmp_path))
    shelf.add({"a": [1, 2]})
    with caplog.at_level("WARNING"):
        plain, new = restart(shelf, tokenizers(NEW, tmp_path))
    assert old.tokenizer is not None
    assert new.tokenizer is not None
    assert f"corpus 'docs' of acme/m is of tokenizer {old.tokenizer}, and the model's is {new.tokenizer}" in caplog.text
    assert (published(shelf, plain), published(shelf, new), published(shelf, old)) == (set(), set(), {"docs"})
    with pytest.raises(IngestError, match=f"{old.tokenizer}; the documents are of none and {new.tokenizer}"):
        shelf.add({"b": [3]})
    shelf.library.remove(key())
    shelf.add({"b": [3]})
    assert shelf.engine.corpus(plain, "docs") == shelf.engine.corpus(new, "docs") == [[3]]


def test_with_the_tokenizer_of_before_it_is_there_again(shelf: Shelf, tmp_path: Path) -> None:
    for words in (OLD, NEW, OLD):
        plain, stated = restart(shelf, tokenizers(words, tmp_path))
        if not shelf.files():
            shelf.add({"a": [1, 2]})
    assert shelf.engine.corpus(plain, "docs") == shelf.engine.corpus(stated, "docs") == [[1, 2]]
