"""The loader process: real ones, that work, fail, and are killed."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from draftd.ingest import (
    CorpusKey,
    DescribeJob,
    IngestError,
    Loaded,
    Loader,
    LoaderError,
    LoadFile,
    LoadJob,
    TokenColumns,
)
from tests.unit.ingest.posts import known, word_tokenizer

KEY = CorpusKey(tenant="t", model="m", adapter="", corpus_id="c")


def job(file: Path, result: Path, max_tokens: int = 1000) -> LoadJob:
    return LoadJob(source=LoadFile(key=KEY, path=file), max_tokens=max_tokens, tokenizers=(), result=result)


def test_columns_come_back_through_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "ids.npz", token_ids=[5, 6, 7], doc_offsets=[0, 1, 3])
    loaded = Loader(threads=1).load(job(tmp_path / "ids.npz", tmp_path))
    columns = TokenColumns.saved_in(tmp_path)
    assert (loaded.key, loaded.tokens) == (KEY, 3)
    assert columns.token_ids.tolist() == [5, 6, 7]
    assert columns.token_ids.dtype == np.int32
    assert columns.document_ends.tolist() == [1, 3]


def test_the_error_names_line_9000_of_10000(tmp_path: Path) -> None:
    lines = ['{"token_ids": [1, 2, 3]}'] * 10_000
    lines[8_999] = '{"token_ids": [1, -2, 3]}'
    (tmp_path / "ids.jsonl").write_text("\n".join(lines))
    with pytest.raises(IngestError, match="line 9000, token 1: id -2 is outside"):
        Loader(threads=1).load(job(tmp_path / "ids.jsonl", tmp_path, max_tokens=100_000))
    assert not list(tmp_path.glob("*.npy"))


def test_tokenizers_are_described(tmp_path: Path) -> None:
    file = word_tokenizer(tmp_path)
    assert Loader(threads=1).describe(DescribeJob(paths=(file,))).tokenizers == ((known(file).fingerprint, 7),)


def test_a_defect_of_the_process_is_no_error_of_the_corpus(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(3))
    nowhere = tmp_path / "absent"  # nobody made the folder for the result
    with pytest.raises(LoaderError, match=r"the loader process failed: .*No such file"):
        Loader(threads=1).load(job(tmp_path / "ids.npy", nowhere))


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[tuple[Loader, Future[Loaded]]]:
    """A loader that reads lines which never come."""
    pipe = tmp_path / "slow.jsonl"
    os.mkfifo(pipe)
    loader = Loader(threads=1)
    with ThreadPoolExecutor(1) as threads:
        loading = threads.submit(loader.load, job(pipe, tmp_path))
        with pipe.open("w"):  # waits until the process has opened it to read
            yield loader, loading


def test_a_killed_process_is_told_from_a_bad_corpus(stuck: tuple[Loader, Future[Loaded]]) -> None:
    _, loading = stuck
    (child,) = psutil.Process().children()
    child.kill()
    with pytest.raises(LoaderError, match="killed by signal 9; is there enough memory"):
        loading.result(30)


def test_closing_ends_what_runs(stuck: tuple[Loader, Future[Loaded]], tmp_path: Path) -> None:
    loader, loading = stuck
    loader.close()
    with pytest.raises(LoaderError, match="the server is stopping"):
        loading.result(30)
    with pytest.raises(LoaderError, match="the server is stopping"):
        loader.load(job(tmp_path / "slow.jsonl", tmp_path))


def test_threads_of_tokenizers_follow_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYON_NUM_THREADS", "64")
    for threads in (1, 3):
        assert Loader(threads).environment["RAYON_NUM_THREADS"] == str(threads)
