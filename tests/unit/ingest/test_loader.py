"""The loader process: real ones, that work, fail, are called off, and are killed."""

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import psutil
import pytest

from draftd.ingest import (
    SEGMENT,
    Built,
    Cancellation,
    Cancelled,
    DescribeJob,
    IngestError,
    KnownTokenizer,
    Loader,
    LoaderError,
    LoadFile,
    LoadJob,
    LoadPost,
    LoadRequest,
    Opened,
    Progress,
    Stage,
)
from draftd.native import Segment
from tests.children import children
from tests.faults.process import until
from tests.unit.ingest.posts import KEY, known, word_tokenizer


def job(path: Path, result: Path, max_tokens: int = 100_000, tokenizers: tuple[KnownTokenizer, ...] = ()) -> LoadJob:
    request = LoadRequest(key=KEY, source=LoadFile(path=path))
    return LoadJob(request=request, max_tokens=max_tokens, tokenizers=tokenizers, result=result)


def ignore(_: Opened | Progress) -> None: ...


def run(job: LoadJob, loader: Loader | None = None) -> Built:
    loader = loader or Loader(processes=2)
    return loader.load(job, on_opened=ignore, on_progress=ignore, cancelled=Cancellation())


def test_a_segment_comes_back_and_what_is_said_on_the_way(tmp_path: Path) -> None:
    np.savez(tmp_path / "ids.npz", token_ids=[5, 6, 7], doc_offsets=[0, 1, 3])
    said: list[Opened | Progress] = []
    built = Loader(processes=1).load(
        job(tmp_path / "ids.npz", tmp_path), on_opened=said.append, on_progress=said.append, cancelled=Cancellation()
    )
    assert (built.documents, built.tokens) == (2, 3)
    segment = Segment.open(tmp_path / SEGMENT)
    assert segment.token_ids().tolist() == [5, 6, 7]
    assert segment.document_ends().tolist() == [1, 3]
    assert said[0] == Opened(key=KEY, tokenizers=(None,))
    size = (tmp_path / "ids.npz").stat().st_size
    assert said[-1] == Progress(stage=Stage.BUILDING, documents=2, tokens=3, bytes_read=size, bytes_total=size)


def test_the_error_names_line_9000_of_10000(tmp_path: Path) -> None:
    lines = ['{"token_ids": [1, 2, 3]}'] * 10_000
    lines[8_999] = '{"token_ids": [1, -2, 3]}'
    (tmp_path / "ids.jsonl").write_text("\n".join(lines))
    with pytest.raises(IngestError, match="line 9000, token 1: id -2 is outside"):
        run(job(tmp_path / "ids.jsonl", tmp_path))
    assert not (tmp_path / SEGMENT).exists()


def test_a_bad_line_of_text_is_named_though_texts_before_it_are_under_way(tmp_path: Path) -> None:
    lines = [json.dumps("the cat sat on a mat " * 50)] * 10_000
    lines[8_999] = "the cat"
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    with pytest.raises(IngestError, match="line 9000: not JSON"):
        run(job(tmp_path / "texts.jsonl", tmp_path, 10_000_000, (known(word_tokenizer(tmp_path)),)))
    assert not (tmp_path / SEGMENT).exists()


def test_texts_tokenized_by_several_processes_keep_their_order(tmp_path: Path) -> None:
    words = ["the", "cat", "sat", "on", "a", "mat"]
    ids = np.random.default_rng(7).integers(0, 6, (20_000, 12))
    texts = (" ".join(words[token] for token in row) for row in ids.tolist())
    lines = [json.dumps({"text": text, "id": line}) for line, text in enumerate(texts)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    run(job(tmp_path / "texts.jsonl", tmp_path, 10_000_000, (known(word_tokenizer(tmp_path)),)))
    segment = Segment.open(tmp_path / SEGMENT)
    assert segment.labels() == [str(line) for line in range(20_000)]
    assert np.array_equal(segment.token_ids().reshape(20_000, 12), ids + 1)


def test_tokenizers_are_described(tmp_path: Path) -> None:
    file = word_tokenizer(tmp_path)
    assert Loader(processes=1).describe(DescribeJob(paths=(file,))).tokenizers == ((known(file).fingerprint, 7),)


def test_a_defect_of_the_process_is_no_error_of_the_corpus(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(3))
    nowhere = tmp_path / "absent"  # nobody made the folder for the result
    with pytest.raises(LoaderError, match=r"the loader process failed: .*No such file"):
        run(job(tmp_path / "ids.npy", nowhere))


def _is_dead(process: psutil.Process) -> bool:
    return process.status() == psutil.STATUS_ZOMBIE


def test_a_process_that_was_started_ahead_does_the_next_job_unless_it_died(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(3))
    loader = Loader(processes=1)
    for dies in (False, True):
        loader.prepare()
        loader.prepare()  # one is enough
        (spare,) = children()
        if dies:
            spare.kill()
            until(partial(_is_dead, spare))
        run(job(tmp_path / "ids.npy", tmp_path), loader)
        (tmp_path / SEGMENT).unlink()
        assert not children()
    loader.prepare()
    loader.close()
    assert not children()
    loader.prepare()
    assert not children()


def test_who_refuses_what_is_opened_ends_the_process(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(3))

    def refuse(_: Opened) -> None:
        raise IngestError("it exists already")

    with pytest.raises(IngestError, match="it exists already"):
        Loader(processes=1).load(
            job(tmp_path / "ids.npy", tmp_path), on_opened=refuse, on_progress=ignore, cancelled=Cancellation()
        )
    assert not children()


class Stuck:
    """A load that reads lines which never come."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        os.mkfifo(folder / "slow.jsonl")
        self.loader = Loader(processes=1)
        self.cancellation = Cancellation()
        self.progress: list[Progress] = []
        self.loading: Future[Built] = threads.submit(self._load, job(folder / "slow.jsonl", folder))

    def _load(self, job: LoadJob) -> Built:
        return self.loader.load(job, on_opened=ignore, on_progress=self.progress.append, cancelled=self.cancellation)


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Stuck]:
    with ThreadPoolExecutor(1) as threads:
        stuck = Stuck(tmp_path, threads)
        with (tmp_path / "slow.jsonl").open("w"):  # waits until the process has opened it to read
            yield stuck
        stuck.loader.close()


def test_a_killed_process_is_told_from_a_bad_corpus(stuck: Stuck) -> None:
    (child,) = children()
    child.kill()
    with pytest.raises(LoaderError, match="killed by signal 9; is there enough memory"):
        stuck.loading.result(30)


def test_a_load_that_is_called_off_ends_at_once(stuck: Stuck) -> None:
    until(lambda: stuck.progress)  # it is under way
    stuck.cancellation.set()
    with pytest.raises(Cancelled):
        stuck.loading.result(30)
    assert not children()


def test_a_load_that_was_called_off_before_is_not_begun(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(3))
    cancelled = Cancellation()
    cancelled.set()
    with pytest.raises(Cancelled):
        Loader(1).load(job(tmp_path / "ids.npy", tmp_path), on_opened=ignore, on_progress=ignore, cancelled=cancelled)
    assert not (tmp_path / SEGMENT).exists()


def test_closing_ends_what_runs(stuck: Stuck, tmp_path: Path) -> None:
    stuck.loader.close()
    with pytest.raises(LoaderError, match="the server is stopping"):
        stuck.loading.result(30)
    with pytest.raises(LoaderError, match="the server is stopping"):
        run(job(tmp_path / "slow.jsonl", tmp_path), stuck.loader)


@pytest.fixture
def tokenizing(tmp_path: Path) -> Iterator[tuple[psutil.Process, Future[Built], IO[str]]]:
    """A loader process with one that tokenizes for it, both waiting for more text."""
    os.mkfifo(tmp_path / "slow.jsonl")
    loader = Loader(processes=1)
    tokenizers = (known(word_tokenizer(tmp_path)),)
    with ThreadPoolExecutor(1) as threads:
        loading = threads.submit(run, job(tmp_path / "slow.jsonl", tmp_path, 10_000_000, tokenizers), loader)
        with (tmp_path / "slow.jsonl").open("w") as pipe:
            for _ in range(12):  # more than a batch
                pipe.write(json.dumps("the cat " * 8_000) + "\n")
            pipe.flush()
            (child,) = children()
            until(child.children)
            yield child, loading, pipe
        loader.close()


def test_a_tokenizer_process_that_dies_fails_the_load(
    tokenizing: tuple[psutil.Process, Future[Built], IO[str]],
) -> None:
    child, loading, pipe = tokenizing
    child.children()[0].kill()
    pipe.close()  # what is left is to be tokenized now
    with pytest.raises(LoaderError, match="a tokenizer process died; is there enough memory"):
        loading.result(30)


def test_a_tokenizer_process_does_not_outlive_a_killed_loader(
    tokenizing: tuple[psutil.Process, Future[Built], IO[str]],
) -> None:
    child, loading, _ = tokenizing
    (tokenizer,) = child.children()
    child.kill()
    with pytest.raises(LoaderError, match="killed by signal 9"):
        loading.result(30)
    tokenizer.wait(30)


def test_a_loader_process_does_not_outlive_a_killed_server(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.jsonl")
    (tmp_path / "job.json").write_text(job(tmp_path / "slow.jsonl", tmp_path).model_dump_json())
    script = (
        "import sys; from pathlib import Path; from draftd.ingest import *; "
        "Loader(1).load(LoadJob.model_validate_json(Path(sys.argv[1]).read_text()), "
        "on_opened=lambda _: None, on_progress=lambda _: None, cancelled=Cancellation())"
    )
    server = psutil.Popen([sys.executable, "-c", script, tmp_path / "job.json"])
    with (tmp_path / "slow.jsonl").open("w"):
        (child,) = server.children()
        server.kill()
        server.wait(30)
        child.wait(30)


def test_whose_documents_they_are_is_said_first_however_long_that_takes(tmp_path: Path) -> None:
    ids = np.random.default_rng(7).integers(0, 100_000, 1_000_000).tolist()  # parsed as JSON before the key is known
    (tmp_path / "body.json").write_text(json.dumps({"token_chunks": [ids]}))
    request = LoadRequest(key=None, source=LoadPost(body=tmp_path / "body.json", directories=()))
    said: list[Opened | Progress] = []
    Loader(processes=1).load(
        LoadJob(request=request, max_tokens=1_000_000, tokenizers=(), result=tmp_path),
        on_opened=said.append,
        on_progress=said.append,
        cancelled=Cancellation(),
    )
    assert isinstance(said[0], Opened)
    assert all(isinstance(line, Progress) for line in said[1:])
