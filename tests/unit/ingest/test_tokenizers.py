"""Tokenizer files: told apart by what is in them, fingerprinted by their vocabulary."""

import hashlib
import json
from pathlib import Path

import mistral_common
import pytest

from draftd.ingest import IngestError
from draftd.ingest.tokenizers import fingerprint_of, open_tokenizer
from tests.unit.ingest.posts import word_tokenizer

PAGE = Path(__file__).parents[3] / "docs" / "http.md"
TEKKEN = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"


def test_the_fingerprint_is_what_its_description_says() -> None:
    plain = (0).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"a"
    plain += (7).to_bytes(4, "little") + (2).to_bytes(4, "little") + b"bc"
    assert fingerprint_of([(7, b"bc"), (0, b"a")]) == hashlib.sha256(plain).hexdigest()


def test_the_printed_fingerprint_is_that_of_the_printed_vocabulary() -> None:
    assert fingerprint_of([(0, b"a"), (1, b"b")]) in PAGE.read_text(encoding="utf-8")


def test_the_fingerprint_depends_on_the_ids_alone_and_not_on_the_file(tmp_path: Path) -> None:
    first = open_tokenizer(word_tokenizer(tmp_path))
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "reformatted.json").write_text(json.dumps(content, indent=4))
    assert open_tokenizer(tmp_path / "reformatted.json").fingerprint == first.fingerprint
    assert open_tokenizer(word_tokenizer(tmp_path, "cat the sat on a mat")).fingerprint != first.fingerprint


def test_a_tekken_file_is_read_and_adds_no_special_tokens() -> None:
    tokenizer = open_tokenizer(TEKKEN)
    assert tokenizer.vocabulary_size == 131072
    assert tokenizer.encode(["hello world", ""]) == [[29706, 4304], []]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "not JSON"),
        ("[1]", "neither a tokenizer.json nor a tekken file"),
        ('{"model": {"type": "unheard of"}}', "tokenizer"),
        ('{"vocab": [], "config": {"version": "v999"}}', "tokenizer .*version"),
        ('{"vocab": [], "config": {}}', "tokenizer"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_refused(content: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text(content)
    with pytest.raises(IngestError, match=complaint) as caught:
        open_tokenizer(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"absent.json: no such file"):
        open_tokenizer(tmp_path / "absent.json")


def test_ids_are_spelt_as_in_the_middle_of_a_text(tmp_path: Path) -> None:
    words = open_tokenizer(word_tokenizer(tmp_path))
    (ids,) = words.encode(["cat the"])
    assert "".join(words.spell(ids)) == " cat the"
    tekken = open_tokenizer(TEKKEN)
    (ids,) = tekken.encode(["hello world, \N{SNOWMAN}"])
    assert tekken.spell(ids)[:3] == ["hello", " world", ","]
    assert tekken.spell([2, 1000 + 0xE2]) == ["</s>", "\ufffd"]
