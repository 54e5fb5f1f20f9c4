"""Files: what each kind holds, packed or not, and where it says it is broken."""

import errno
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftd.ingest import IngestError
from draftd.ingest.documents import Ids
from draftd.ingest.readers import Position, ReadLimits, read_path
from tests.unit.ingest.formats import PACKED, WRITTEN, npy, npz, table, zstd
from tests.unit.ingest.posts import known, load_path, load_upload, word_tokenizer

some_documents = st.lists(st.lists(st.integers(0, 2**31 - 2), max_size=20), min_size=1, max_size=20).filter(any)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=some_documents, ending=st.sampled_from(sorted(WRITTEN)), packed=st.sampled_from(sorted(PACKED)))
def test_documents_come_back_from_every_kind_of_file(
    documents: list[list[int]], ending: str, packed: str, tmp_path: Path
) -> None:
    content = PACKED[packed](WRITTEN[ending](documents))
    result = load_upload(tmp_path, f"ids{ending}{packed}", content)
    assert result.documents == [document for document in documents if document]


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("dtype", ["<i4", ">i8", "<u2", "<u8"])
def test_an_array_is_one_document(dtype: str, packed: str, tmp_path: Path) -> None:
    content = PACKED[packed](npy(np.array([1, 2, 65535], dtype)))
    assert load_upload(tmp_path, f"ids.npy{packed}", content).documents == [[1, 2, 65535]]


def test_a_compressed_archive_of_arrays_is_read_too(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "ids.npz", token_ids=np.arange(5), doc_offsets=[0, 2, 2, 5])
    assert load_path(tmp_path / "ids.npz", tmp_path).documents == [[0, 1], [2, 3, 4]]


def test_a_header_that_is_not_padded_is_read_too(tmp_path: Path) -> None:
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    assert load_upload(tmp_path, "ids.npy", content + np.array([7, 8], "<i4").tobytes()).documents == [[7, 8]]


@pytest.mark.parametrize("packed", PACKED)
def test_a_text_file_is_one_document(packed: str, tmp_path: Path) -> None:
    tokenizers = (known(word_tokenizer(tmp_path)),)
    content = PACKED[packed](b"the cat\nsat gr\xc3\xb6\xc3\x9fe")
    assert load_upload(tmp_path, f"book.TXT{packed}", content, tokenizers=tokenizers).documents == [[1, 2, 3, 0]]


@pytest.mark.parametrize("name", ["book.txt", "README.md", "book.txt.gz"])
def test_a_text_file_is_known_by_its_name(name: str, tmp_path: Path) -> None:
    content = PACKED[".gz"](b"the cat") if name.endswith(".gz") else b"the cat"
    (tmp_path / name).write_bytes(content)
    result = load_path(tmp_path / name, tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))
    assert (result.documents, result.labels) == ([[1, 2]], [name])


def test_a_text_that_was_streamed_has_no_name(tmp_path: Path) -> None:
    tokenizers = (known(word_tokenizer(tmp_path)),)
    assert load_upload(tmp_path, "body.txt", b"the cat", tokenizers=tokenizers).labels == [""]


def test_a_line_of_jsonl_is_a_string_or_holds_text_or_ids(tmp_path: Path) -> None:
    content = b'"the cat"\n\n{"text": "a mat", "id": 7, "more": [{}]}\n  \n{"token_ids": [1, 2], "id": "x"}\n"sat"'
    result = load_upload(tmp_path, "docs.jsonl", content, tokenizers=(known(word_tokenizer(tmp_path)),))
    assert result.documents == [[1, 2], [5, 6], [1, 2], [3]]
    assert result.labels == ["", "7", "x", ""]


def test_a_table_has_texts_or_ids_and_perhaps_labels(tmp_path: Path) -> None:
    tokenizers = (known(word_tokenizer(tmp_path)),)
    texts = load_upload(
        tmp_path, "a.parquet", table(text=["the cat", "", "sat"], id=[7, 8, None]), tokenizers=tokenizers
    )
    assert (texts.documents, texts.labels) == ([[1, 2], [3]], ["7", ""])
    ids = table(
        id=["x", "y"], token_ids=pyarrow.array([[1], [2, 3]], pyarrow.large_list(pyarrow.uint16())), other=[1, 2]
    )
    result = load_upload(tmp_path, "a.parquet", ids)
    assert (result.documents, result.labels) == ([[1], [2, 3]], ["x", "y"])


def test_a_table_is_read_in_parts(tmp_path: Path) -> None:
    documents = [[row, row + 1] for row in range(10_000)]
    result = load_upload(tmp_path, "a.parquet", WRITTEN[".parquet"](documents), max_tokens=20_000)
    assert result.documents == documents
    documents[9_000] = [1, -1]
    with pytest.raises(IngestError, match="row 9001, token 1: id -1 is outside"):
        load_upload(tmp_path, "a.parquet", WRITTEN[".parquet"](documents), max_tokens=20_000)


def test_a_folder_of_texts_is_a_document_each_named_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "two.md").write_text("a mat")
    (folder / "a.txt").write_text("the cat")
    (folder / "c.rst").write_text("sat")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "secret.txt").write_text("on")
    (folder / ".gitignore").write_text("on")
    (folder / "link.txt").symlink_to(tmp_path / "tokenizer.json")
    result = load_path(folder, tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))
    assert result.documents == [[1, 2], [3], [5, 6]]
    assert result.labels == ["a.txt", "c.rst", "b/two.md"]


def test_an_id_that_would_be_too_long_is_the_end_of_the_path(tmp_path: Path) -> None:
    deep = tmp_path / "texts" / ("a" * 200) / ("b" * 100) / "c"
    deep.mkdir(parents=True)
    (deep / "d.txt").write_text("the cat")
    (deep / ("e" * 251 + ".txt")).write_text("sat")
    result = load_path(tmp_path / "texts", tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))
    assert result.labels == ["b" * 100 + "/c/d.txt", "e" * 251 + ".txt"]


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.txt")).write_text("the cat")
    with pytest.raises(IngestError, match="characters that can't be printed") as caught:
        load_path(folder, tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))
    str(caught.value).encode()  # it is sent in a line of JSON


def test_a_file_of_a_folder_that_is_no_text_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("the cat")
    (folder / "b.bin").write_bytes(b"ab\xff")
    with pytest.raises(IngestError, match=r"b.bin is not UTF-8 at byte 2"):
        load_path(folder, tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))


def test_a_file_of_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_text("the cat")
    (folder / "b" / "memory").symlink_to("/proc/self/mem")  # opens, and can't be read at its begin
    with monkeypatch.context() as patched:
        patched.setattr(Path, "is_symlink", lambda _: False)
        with pytest.raises(IngestError, match=r"^b/memory: input/output error$"):
            load_path(folder, tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))


def test_a_folder_of_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not be left out without a word."""
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_text("the cat")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if Path(path) == folder / "b":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(IngestError, match=r"^b: permission denied$"):
        load_path(folder, tmp_path, tokenizers=(known(word_tokenizer(tmp_path)),))


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", '"the cat"\n"sat"\n'), ("a.txt", "the cat")])
def test_a_mark_of_the_byte_order_is_no_text(name: str, content: str, tmp_path: Path) -> None:
    tokenizers = (known(word_tokenizer(tmp_path)),)
    marked = load_upload(tmp_path, name, content.encode("utf-8-sig"), tokenizers=tokenizers)
    assert marked.documents == load_upload(tmp_path, name, content.encode(), tokenizers=tokenizers).documents


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("docs.csv", b"", r"^the ending says what a file holds: .jsonl, .parquet, .npz, .npy, .txt, .md, each also"),
        ("docs", b"", r"^the ending says"),
        ("docs.csv.gz", b"", r"^the ending says"),
        (
            "a.jsonl",
            b'"x"\n"y"\n{"text": 1}\n',
            r"line 3: Expected `str \| null`, got `int` - at `\$.text`; a line should",
        ),
        ("a.jsonl", b'{"token_ids": [1]}\n{"text": "x", "token_ids": [1]}\n', r"line 2: a line should be a string"),
        ("a.jsonl", b'{"token_ids": [1]}\n{"id": "x"}\n', r"line 2: a line should be a string"),
        ("a.jsonl", b'{"token_ids": [1, true]}\n', r"line 1: Expected `int`, got `bool` - at `\$.token_ids\[1\]`"),
        ("a.jsonl", b'{"token_ids": [1.0]}\n', r"line 1: Expected `int`, got `float`"),
        ("a.jsonl", b'{"token_ids": [1, "2"]}\n', r"line 1: Expected `int`, got `str` - at `\$.token_ids\[1\]`"),
        ("a.jsonl", b'{"token_ids": [18446744073709551616]}\n', r"line 1: Expected `int` <= 9223372036854775807"),
        ("a.jsonl", b'{"token_ids": [1]}\n{"token_ids": [3, -1]}\n', r"line 2, token 1: id -1 is outside"),
        ("a.jsonl", b'{"token_ids": [1], "id": [1]}\n', r"line 1: Expected `int \| str \| null`"),
        (
            "a.jsonl",
            b'{"token_ids": [1], "id": "\\u0007"}\n',
            r"line 1: id '\\x07' has characters that can't be printed",
        ),
        ("a.jsonl", b'{"token_ids": [1], "id": "%s"}\n' % (b"x" * 257), r"line 1: id 'x+'... is longer than 256 bytes"),
        ("a.jsonl", b'{"token_ids": [1]}\n[1]\n', r"line 2: Expected `str \| object`, got `array`"),
        ("a.jsonl", b'{"token_ids": [1]}\n"y\n', r"line 2: not JSON"),
        ("a.jsonl", b'{"token_ids": [1]}\n"\xff"\n', r"line 2: not JSON"),
        ("a.jsonl", b'{"x": ' + b"[" * 100_000, r"line 1: not JSON: maximum recursion depth"),
        ("a.jsonl", b"\n \n", r"the corpus is empty"),
        ("a.txt", b"ab\xff", r"the file is not UTF-8 at byte 2"),
        ("a.npy", b"no array", r"the array: not a numpy array"),
        ("a.npy", npy(np.array([[1]])), r"should be one row of integers"),
        ("a.npy", npy(np.array([1.5])), r"should be one row of integers"),
        ("a.npy", npy(np.array([None], object)), r"should be one row of integers"),
        ("a.npy", npy(np.arange(9))[:-8], r"cut off: 9 integers announced, 8 found"),
        ("a.npy", npy(np.array([1, 2, -3])), r"the array, token 2: id -3 is outside"),
        ("a.npy", npy(np.array([2**63], "<u8")), r"the array, token 0: id 9223372036854775808 is outside"),
        ("a.npy", npy(np.array([], np.int32)), r"the corpus is empty"),
        ("a.npy", b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535, r"the array: not a numpy array"),
        ("a.npz", b"no archive", r"not an .npz file"),
        ("a.npz", npz(token_ids=[1]), r"no array doc_offsets"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=[0, 3]), r"doc_offsets should grow from 0 to 2"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=[1, 2]), r"doc_offsets should grow from 0 to 2"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=np.array([0, 2, 1, 2], np.uint64)), r"doc_offsets should grow"),
        ("a.npz", npz(token_ids=[1, 2], doc_offsets=np.array([], int)), r"doc_offsets should grow"),
        ("a.npz", npz(token_ids=[1, 2, -1], doc_offsets=[0, 1, 3]), r"document 1, token 1: id -1 is outside"),
        ("a.parquet", b"no table", r"the Parquet file is damaged"),
        ("a.parquet", table(texts=["x"]), r"should have a column text or token_ids; it has texts"),
        (
            "a.parquet",
            table(text=["x"], token_ids=[[1]]),
            r"should have a column text or token_ids; it has text, token_ids",
        ),
        ("a.parquet", table(text=[1]), r"column text should hold strings, holds int64"),
        ("a.parquet", table(token_ids=[1]), r"column token_ids should hold lists of integers, holds int64"),
        ("a.parquet", table(token_ids=[["1"]]), r"column token_ids should hold lists of integers, holds list"),
        ("a.parquet", table(token_ids=[[1], None]), r"row 2: token_ids is null"),
        ("a.parquet", table(token_ids=[[1], [2, None]]), r"row 2, token 1: is null"),
        ("a.parquet", table(token_ids=[[1], [2, -3]]), r"row 2, token 1: id -3 is outside"),
        ("a.parquet", table(text=["x", None]), r"row 2: text is null"),
        ("a.parquet", table(token_ids=[[1]], id=["\a"]), r"row 1: id '\\x07' has characters"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(name: str, content: bytes, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=complaint) as caught:
        load_upload(tmp_path, name, content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", WRITTEN)
@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_a_packed_file_that_is_cut_off_or_damaged_is_refused(ending: str, packed: str, tmp_path: Path) -> None:
    content = PACKED[packed](WRITTEN[ending]([[1, 2], [3]]))
    for broken in (content[:-4], content[:6], b"", b"quite other bytes", content + b"and more"):
        with pytest.raises(IngestError, match=r"is damaged|the corpus is empty|not an .npz file"):
            load_upload(tmp_path, f"ids{ending}{packed}", broken)


@pytest.mark.parametrize("ending", [".jsonl", ".npy", ".npz", ".txt", ".parquet"])
@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_a_bomb_is_given_up_at_a_size_that_follows_from_the_token_limit(
    ending: str, packed: str, tmp_path: Path
) -> None:
    bomb = PACKED[packed](b"\n" * (16 << 20))
    with pytest.raises(IngestError) as caught:
        load_upload(tmp_path, f"bomb{ending}{packed}", bomb, max_tokens=10)
    assert "holds more than 1049216 bytes: 64 are taken for each token" in str(caught.value) or ending == ".npy"


def test_a_zstd_file_that_wants_too_much_memory_is_refused(tmp_path: Path) -> None:
    with zstd.ZstdFile(tmp_path / "a", "w", options={zstd.CompressionParameter.window_log: 28}) as file:
        file.write(b"\n" * 100)
    with pytest.raises(IngestError, match=r"is damaged: .*too much memory"):
        load_upload(tmp_path, "a.jsonl.zst", (tmp_path / "a").read_bytes())


def test_a_table_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    bomb = table(text=["x" * (4 << 20)])
    assert len(bomb) < 1 << 20
    with pytest.raises(IngestError, match=r"the Parquet file holds 4.* bytes: 64 are taken for each token"):
        load_upload(tmp_path, "a.parquet", bomb, max_tokens=10)


def test_a_table_of_one_string_in_many_rows_is_not_unpacked(tmp_path: Path) -> None:
    many = pyarrow.DictionaryArray.from_arrays(np.zeros(4096, np.int32), ["x" * (1 << 20)])  # 4 GiB of text
    for column in ("text", "id"):
        bomb = table(**{"text": ["x"] * 4096, column: many})
        assert len(bomb) < 1 << 20
        before = pyarrow.total_allocated_bytes()
        (tmp_path / "a.parquet").write_bytes(bomb)
        pieces = read_path(tmp_path / "a.parquet", ReadLimits(max_tokens=1 << 20), Position())
        if column == "text":
            next(pieces)
        else:
            with pytest.raises(IngestError, match="is longer than 256 bytes"):
                next(pieces)
        assert pyarrow.total_allocated_bytes() - before < 16 << 20


def test_a_table_of_long_runs_of_one_id_is_refused_before_it_is_read(tmp_path: Path) -> None:
    bomb = table(token_ids=[[7] * 500_000] * 4)
    assert len(bomb) < 1 << 16
    with pytest.raises(IngestError, match="token_ids: the corpus holds more than 1000000 tokens"):
        load_upload(tmp_path, "a.parquet", bomb, max_tokens=1_000_000)


@pytest.mark.parametrize("packed", PACKED)
def test_an_array_above_the_limit_is_refused_before_it_is_read(packed: str, tmp_path: Path) -> None:
    header = npy(np.zeros(0, np.int32)).replace(b"(0,), }            ", b"(1000000000000,), }")
    with pytest.raises(IngestError, match="more than 1000 tokens"):
        load_upload(tmp_path, f"a.npy{packed}", PACKED[packed](header))


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_text_without_end_does_not_fill_the_memory(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(IngestError, match="longer than 33554432 bytes"):
        load_path(tmp_path / name, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.jsonl", b'{"token_ids": [1, 2]}\n\n{"token_ids": [3, 4]}\n', "line 3"),
        ("a.npz", npz(token_ids=[1, 2, 3], doc_offsets=[0, 2, 3]), "document 1"),
        ("a.parquet", table(token_ids=[[1, 2], [3]]), "row 2"),
    ],
)
def test_the_document_that_passes_the_limit_is_named(name: str, content: bytes, place: str, tmp_path: Path) -> None:
    with pytest.raises(
        IngestError, match=f"{place}: the corpus holds more than 2 tokens, the limit corpora.max_tokens"
    ):
        load_upload(tmp_path, name, content, max_tokens=2)


def test_a_file_that_is_not_there_is_left_to_who_names_it(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"^no such file"):
        load_path(tmp_path / "absent.npy", tmp_path)


def test_text_is_tokenized_in_its_order_by_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("draftd.ingest.encoding.BATCH_CHARACTERS", 8)
    lines = ['"the cat"', '{"token_ids": [3]}', '"a mat"', '"sat"', '"on"'] * 5
    content = "\n".join(lines).encode()
    result = load_upload(tmp_path, "docs.jsonl", content, tokenizers=(known(word_tokenizer(tmp_path)),))
    assert result.documents == [[1, 2], [3], [5, 6], [3], [4]] * 5


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b'{"token_ids": [1]}\n')
    os.close(write)
    (tmp_path / "pipe.jsonl").symlink_to(f"/proc/self/fd/{read}")
    assert load_path(tmp_path / "pipe.jsonl", tmp_path).documents == [[1]]
    os.close(read)


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("ending", [".jsonl", ".npz"])
def test_memory_does_not_grow_with_the_file(ending: str, packed: str, tmp_path: Path) -> None:
    """What is read is 12 MB as token ids; what Python keeps meanwhile is the little that is handed on at once."""
    documents = [list(range(1000))] * 3000
    (tmp_path / f"ids{ending}{packed}").write_bytes(PACKED[packed](WRITTEN[ending](documents)))
    del documents
    tracemalloc.start()
    tokens = 0
    for piece in read_path(tmp_path / f"ids{ending}{packed}", ReadLimits(max_tokens=10_000_000), Position()):
        assert isinstance(piece, Ids)
        tokens += len(piece.token_ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tokens == 3_000_000
    assert peak < 12_000_000
