"""Files: what each kind holds, and where it says it is broken."""

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from draftd.ingest import CorpusKey, IngestError, LoadFile, LoadJob
from draftd.ingest.documents import read_file
from draftd.ingest.work import load
from tests.unit.ingest.posts import known, word_tokenizer


def ids_of(name: str, content: bytes, max_tokens: int = 1000) -> list[list[int]]:
    documents = read_file(name, io.BytesIO(content), max_tokens)
    return [list(document.token_ids) for document in documents if document.token_ids is not None]


def npz(**arrays: ArrayLike) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array: ArrayLike) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_line_of_jsonl_is_a_string_or_holds_text_or_ids() -> None:
    content = b'"the cat"\n\n{"text": "a mat", "id": 7}\n{"token_ids": [1, 2]}\n'
    documents = list(read_file("docs.jsonl", io.BytesIO(content), 1000))
    assert [(document.place, document.text, document.token_ids) for document in documents] == [
        ("line 1", "the cat", None),
        ("line 3", "a mat", None),
        ("line 4", None, [1, 2]),
    ]


def test_text_and_ids_of_one_file_keep_their_order(tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('"the cat"\n{"token_ids": [3]}\n"a mat"\n')
    key = CorpusKey(tenant="t", model="m", adapter="", corpus_id="c")
    tokenizers = (known(word_tokenizer(tmp_path)),)
    load(LoadJob(source=LoadFile(key=key, path=file), max_tokens=100, tokenizers=tokenizers, result=tmp_path))
    assert np.load(tmp_path / "token_ids.npy").tolist() == [1, 2, 3, 5, 6]
    assert np.load(tmp_path / "document_ends.npy").tolist() == [2, 3, 5]


def test_a_text_file_is_one_document() -> None:
    (document,) = read_file("book.TXT", io.BytesIO("größe\nzwei".encode()), 1000)
    assert document.text == "größe\nzwei"


def test_arrays_of_ids() -> None:
    assert ids_of("a.npy", npy(np.array([1, 2, 3], ">i8"))) == [[1, 2, 3]]
    assert ids_of("a.npz", npz(token_ids=np.arange(5), doc_offsets=[0, 2, 2, 5])) == [[0, 1], [], [2, 3, 4]]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("docs.csv", b"", r"docs.csv: the ending says what a file holds: .jsonl, .txt, .npz, .npy"),
        ("docs", b"", r"docs: the ending says"),
        ("a.jsonl", b'"x"\n"y"\n{"text": 1}\n', r"line 3: should be a string"),
        ("a.jsonl", b'"x"\n{"text": "x", "token_ids": [1]}\n', r"line 2: should be a string"),
        ("a.jsonl", b'"x"\n"y\n', r"line 2: not JSON"),
        ("a.jsonl", b'"x"\n"\xff"\n', r"line 2: not JSON"),
        ("a.txt", b"ab\xff", r"not UTF-8 at byte 2"),
        ("a.npy", b"no array", r"the array: not a numpy array"),
        ("a.npy", npy(np.array([[1]])), r"should be one row of integers"),
        ("a.npy", npy(np.array([1.5])), r"should be one row of integers"),
        ("a.npy", npy(np.arange(9))[:-8], r"cut off: 9 integers announced, 8 found"),
        ("a.npz", b"no archive", r"not an .npz file"),
        ("a.npz", npz(token_ids=[1]), r"no array doc_offsets"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=[0, 3]), r"doc_offsets should grow from 0 to 2"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=[1, 2]), r"doc_offsets should grow from 0 to 2"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=np.array([0, 2, 1, 2], np.uint64)), r"doc_offsets should grow"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=np.array([], int)), r"doc_offsets should grow"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(name: str, content: bytes, complaint: str) -> None:
    with pytest.raises(IngestError, match=complaint):
        ids_of(name, content)


def test_an_array_above_the_limit_is_refused_before_it_is_read() -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i4", "fortran_order": False, "shape": (10**12,)})  # type: ignore[no-untyped-call]
    with pytest.raises(IngestError, match="more than 1000 tokens"):
        ids_of("a.npy", header.getvalue())


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_text_without_end_does_not_fill_the_memory(name: str) -> None:
    with Path("/dev/zero").open("rb") as endless, pytest.raises(IngestError, match="longer than 67108864 bytes"):
        list(read_file(name, endless, 1000))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    key = CorpusKey(tenant="t", model="m", adapter="", corpus_id="c")
    source = LoadFile(key=key, path=tmp_path / "absent.npy")
    with pytest.raises(IngestError, match=r"absent.npy: no such file"):
        load(LoadJob(source=source, max_tokens=100, tokenizers=(), result=tmp_path))
