"""The corpus commands, as processes, against a real server."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.faults.process import until
from tests.unit.cli.processes import COMMAND, SECONDS, Served, draftd, environment, only_line, serving
from tests.unit.ingest.formats import PACKED, WRITTEN, npy
from tests.unit.ingest.posts import word_tokenizer

Server = tuple[str, ...]  # the options that name it


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    tokenizers = json.dumps([{"tenant": "text", "path": str(word_tokenizer(folder))}])
    with serving(folder / "data", DRAFTD_TOKENIZERS=tokenizers) as served:
        yield served


@pytest.fixture
def server(served: Served, tmp_path: Path) -> Server:
    """A tenant of its own for each test."""
    return ("--http", served.endpoints["http"], "--tenant", tmp_path.name)


def tokens(server: Server) -> dict[str, int]:
    listed = draftd("corpus", "list", *server).stdout
    return {name: int(count.replace(",", "")) for name, count in re.findall(r"│ (\S+) +│ +([\d,]+) │", listed)}


def jobs(served: Served) -> list[dict[str, object]]:
    with urllib.request.urlopen(served.endpoints["http"] + "/jobs", timeout=SECONDS) as reply:
        found: list[dict[str, object]] = json.load(reply)["jobs"]
    return found


def test_documents_are_added_listed_and_removed(server: Server, tmp_path: Path) -> None:
    np.savez(tmp_path / "ids.npz", token_ids=[1, 2, 3], doc_offsets=[0, 1, 3])
    (tmp_path / "more.jsonl").write_text('{"token_ids": [4, 5]}\n')
    files = (tmp_path / "ids.npz", tmp_path / "more.jsonl")
    added = draftd("corpus", "add", "docs", *files, *server)
    assert added.stdout == "3 documents with 5 tokens are added to corpus 'docs'\n", added.stderr
    assert tokens(server) == {"docs": 5}
    assert tokens((*server, "--model", "other")) == {}
    assert draftd("corpus", "add", "docs", *files, *server).returncode == 0
    assert tokens(server) == {"docs": 10}
    assert "exists already" in only_line(draftd("corpus", "add", "docs", *files, *server, "--new"))
    assert draftd("corpus", "remove", "docs", *server).stdout.endswith("is removed\n")
    assert "does not exist" in only_line(draftd("corpus", "remove", "docs", *server))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ids.npy", npy(np.array([1, 2, 3]))),
        ("ids.jsonl.gz", PACKED[".gz"](WRITTEN[".jsonl"]([[1, 2], [3]]))),
        ("ids.parquet.zst", PACKED[".zst"](WRITTEN[".parquet"]([[1, 2], [3]]))),
    ],
)
def test_one_file_is_sent_as_it_is(name: str, content: bytes, server: Server, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    added = draftd("corpus", "add", "a/b", tmp_path / name, *server)
    assert added.returncode == 0, added.stderr
    assert tokens(server) == {"a/b": 3}


def test_a_folder_of_texts_is_added_and_one_of_them_deleted(served: Served, tmp_path: Path) -> None:
    server = ("--http", served.endpoints["http"], "--tenant", "text")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat")
    (tmp_path / "texts" / "b.txt").write_text("sat on a mat")
    assert draftd("corpus", "add", "docs", tmp_path / "texts", *server).returncode == 0
    assert tokens(server) == {"docs": 6}
    deleted = draftd("corpus", "delete", "docs", "--document", "a.txt", *server)
    assert deleted.stdout == "1 documents with 2 tokens are deleted\n", deleted.stderr
    assert tokens(server) == {"docs": 4}
    nothing = draftd("corpus", "delete", "docs", "--older-than", "3600", *server)
    assert nothing.stdout == "0 documents with 0 tokens are deleted\n", nothing.stderr
    assert "say what to delete" in only_line(draftd("corpus", "delete", "docs", *server))
    assert "request_ids are of a history" in only_line(
        draftd("corpus", "delete", "docs", "--document", "x", "--request", "r", *server)
    )
    history = draftd("corpus", "delete", "--history", "--request", "r", *server)
    assert history.stdout == "0 documents with 0 tokens are deleted\n", history.stderr


def test_a_namespace_moves_as_one_file(server: Server, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(7))
    assert draftd("corpus", "add", "docs", tmp_path / "ids.npy", *server).returncode == 0
    exported = draftd("corpus", "export", tmp_path / "archive", *server)
    assert exported.returncode == 0, exported.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("archive")] == ["archive"]
    assert draftd("corpus", "remove", "docs", *server).returncode == 0
    imported = draftd("corpus", "import", tmp_path / "archive", *server[:2])
    assert "1 corpora" in imported.stdout, imported.stderr
    assert "7 tokens" in imported.stdout
    assert tokens(server) == {"docs": 7}
    (tmp_path / "archive").write_bytes(b"something else")
    assert only_line(draftd("corpus", "import", tmp_path / "archive", *server[:2]))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("absent.jsonl", None, "absent.jsonl: No such file or directory"),
        ("docs.csv", "", "docs.csv: the ending says what a file holds"),
        ("docs.jsonl", "", "the corpus is empty"),
        ("docs.jsonl", '{"token_ids": [1]}\n{"token_ids": 1}\n', "line 2: Expected `array | null`"),
        ("docs.jsonl", '"text"\n', "text needs a tokenizer, and none is configured"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    name: str, content: str | None, complaint: str, server: Server, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert complaint in only_line(draftd("corpus", "add", "docs", tmp_path / name, *server))
    assert tokens(server) == {}


def test_of_several_files_one_that_is_wrong_is_named_and_nothing_is_added(
    server: Server, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "good.jsonl").write_text('{"token_ids": [1]}\n')
    (tmp_path / "bad.jsonl").write_text('{"token_ids": [1]}\n{"token_ids": [1.5]}\n')
    failed = draftd("corpus", "add", "docs", tmp_path / "good.jsonl", tmp_path / "bad.jsonl", *server)
    assert "bad.jsonl: line 2: Expected `int`" in only_line(failed)
    assert tokens(server) == {}
    until(lambda: jobs(served)[-1]["state"] == "failed")


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"token_ids": [1]}\n')
    failed = draftd("corpus", "add", "docs", tmp_path / "docs.jsonl", "--http", "http://127.0.0.1:1")
    assert "127.0.0.1:1/corpora/docs/documents" in only_line(failed)
    assert "Connection refused" in only_line(failed)


def test_an_interrupted_upload_adds_nothing(server: Server, served: Served, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.jsonl")
    (tmp_path / "docs.jsonl").write_text('{"token_ids": [1]}\n')
    files = (str(tmp_path / "docs.jsonl"), str(tmp_path / "slow.jsonl"))
    command = [*COMMAND, "corpus", "add", "interrupted", *files, *server]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment({})) as process,
        (tmp_path / "slow.jsonl").open("w"),  # waits until the process has come to it
    ):
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    until(lambda: jobs(served)[-1]["state"] == "failed")
    assert tokens(server) == {}


def test_the_server_is_found_by_the_config(served: Served, tmp_path: Path) -> None:
    address = served.endpoints["http"].removeprefix("http://")
    listed = draftd("corpus", "list", DRAFTD_LISTEN__HTTP=address)
    assert listed.returncode == 0, listed.stderr
    (tmp_path / "draftd.toml").write_text(f'[listen]\nhttp = "{address}"\n')
    listed = draftd("corpus", "list", DRAFTD_CONFIG=str(tmp_path / "draftd.toml"))
    assert listed.returncode == 0, listed.stderr
