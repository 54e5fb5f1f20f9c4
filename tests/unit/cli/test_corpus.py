"""The corpus commands, as processes, against a real server."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from tests.faults.process import until
from tests.unit.cli.processes import COMMAND, SECONDS, Served, draftd, environment, only_line, serving
from tests.unit.ingest.formats import PACKED, WRITTEN, npy, npz, table
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
    assert added.stdout == "added 3 documents with 5 tokens to corpus 'docs'\n", added.stderr
    assert tokens(server) == {"docs": 5}
    assert tokens((*server, "--model", "other")) == {}
    assert draftd("corpus", "add", "docs", *files, *server).returncode == 0
    assert tokens(server) == {"docs": 10}
    assert "exists already" in only_line(draftd("corpus", "add", "docs", *files, *server, "--new"))
    assert draftd("corpus", "remove", "docs", *server).stdout.endswith("is removed\n")
    assert "does not exist" in only_line(draftd("corpus", "remove", "docs", *server))


@pytest.mark.parametrize("name", ["[/red]", "[bold]x", ":smile:"])
def test_a_corpus_is_listed_by_the_name_it_has(name: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "ids.jsonl").write_text('{"token_ids": [4, 5]}\n')
    assert draftd("corpus", "add", name, tmp_path / "ids.jsonl", *server).returncode == 0
    assert tokens(server) == {name: 2}


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
    assert deleted.stdout == "deleted 1 document with 2 tokens\n", deleted.stderr
    assert tokens(server) == {"docs": 4}
    nothing = draftd("corpus", "delete", "docs", "--older-than", "3600", *server)
    assert nothing.stdout == "deleted 0 documents with 0 tokens\n", nothing.stderr
    history = draftd("corpus", "delete", "--history", "--request", "r", *server)
    assert history.stdout == "deleted 0 documents with 0 tokens; nothing is known as 'r'\n", history.stderr


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([], "say where to delete: give the ID of a corpus, or --history"),
        (["docs", "--history"], "give the ID of a corpus, or --history, and not both"),
        (["--document", "x"], "say where to delete"),
        (["docs"], "say what to delete: --document or --older-than"),
        (["docs", "--request", "r"], "--request and --group go with --history"),
        (["docs", "--group", "g", "--document", "x"], "--request and --group go with --history"),
        (["--history", "--document", "x"], "--document goes with a corpus"),
        (["docs", "--older-than", "-60"], "'--older-than': Input should be greater than or equal to 0"),
        (["--history", "--older-than", "-1"], "'--older-than': Input should be greater than or equal to 0"),
        (["docs", "--older-than", "nan"], "'--older-than': Input should be a valid integer"),
        (
            ["--history"],
            "this deletes everything that requests of tenant 'default' and model 'default' left: give --yes",
        ),
    ],
)
def test_a_deletion_that_does_not_say_what_it_means_is_refused(given: list[str], complaint: str) -> None:
    """Before any server is asked."""
    assert complaint in only_line(draftd("corpus", "delete", *given, "--http", "127.0.0.1:1"))


def test_an_age_beyond_all_times_picks_nothing(server: Server, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(7))
    assert draftd("corpus", "add", "docs", tmp_path / "ids.npy", *server).returncode == 0
    deleted = draftd("corpus", "delete", "docs", "--older-than", str(10**30), *server)
    assert deleted.stdout == "deleted 0 documents with 0 tokens\n", deleted.stderr


def test_a_whole_history_is_deleted_after_a_question_or_with_yes(server: Server) -> None:
    command = [*COMMAND, "corpus", "delete", "--history", *server]
    for answer, status in ((b"n\n", 1), (b"y\n", 0)):
        terminal, end = pty.openpty()
        with subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            os.write(terminal, answer)
            out, error = process.communicate(timeout=SECONDS)
        os.close(end)
        os.close(terminal)
        assert process.returncode == status
        assert b"Delete everything that requests of tenant" in error
        assert (b"nothing is deleted" in error, b"deleted 0 documents" in out) == (status == 1, status == 0)
    assert draftd("corpus", "delete", "--history", "--yes", *server).returncode == 0


def test_a_namespace_moves_as_one_file(server: Server, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(7))
    assert draftd("corpus", "add", "docs", tmp_path / "ids.npy", *server).returncode == 0
    exported = draftd("corpus", "export", tmp_path / "archive", *server)
    assert exported.returncode == 0, exported.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("archive")] == ["archive"]
    assert draftd("corpus", "remove", "docs", *server).returncode == 0
    imported = draftd("corpus", "import", tmp_path / "archive", *server[:2])
    assert "1 corpus and 0 histories" in imported.stdout, imported.stderr
    assert "7 tokens" in imported.stdout
    assert tokens(server) == {"docs": 7}
    (tmp_path / "archive").write_bytes(b"something else")
    assert only_line(draftd("corpus", "import", tmp_path / "archive", *server[:2]))


def at_a_terminal(*arguments: str | Path) -> bytes:
    """What a command that succeeds shows on standard error."""
    terminal, end = pty.openpty()
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=end, env=environment({"TERM": "xterm"})
    ) as process:
        os.close(end)
        shown = b""
        with suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as screen:  # an error is how it ends
            while part := screen.read(65536):
                shown += part
    assert process.returncode == 0, shown
    return shown


def test_long_commands_show_how_far_they_are(server: Server, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(1000))
    assert b"send ids.npy" in at_a_terminal("corpus", "add", "docs", tmp_path / "ids.npy", *server)
    assert b"export" in at_a_terminal("corpus", "export", tmp_path / "archive", *server)
    assert draftd("corpus", "remove", "docs", *server).returncode == 0
    assert b"import" in at_a_terminal("corpus", "import", tmp_path / "archive", *server[:2])
    assert tokens(server) == {"docs": 1000}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("absent.jsonl", None, "absent.jsonl: No such file or directory"),
        ("absent.txt", None, "absent.txt: no such file or directory"),
        ("latin.txt", b"ab\xff", "latin.txt: the file is not UTF-8 at byte 2"),
        ("docs.csv", "", "docs.csv: the ending says what a file holds"),
        ("docs.jsonl", "", "the corpus is empty"),
        ("docs.jsonl", '{"token_ids": [1]}\n{"token_ids": 1}\n', "line 2: Expected `array | null`"),
        ("docs.jsonl", '"text"\n', "text needs a tokenizer, and none is configured"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    name: str, content: str | bytes | None, complaint: str, server: Server, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert complaint in only_line(draftd("corpus", "add", "docs", tmp_path / name, *server))
    assert tokens(server) == {}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("bad.jsonl", b'{"token_ids": [1]}\n{"token_ids": [1.5]}\n', "line 2: Expected `int`"),
        ("bad.jsonl", b'{"token_ids": [1]}\n\n{"token_ids": [1, -2]}\n', "line 3, token 1: id -2 is outside"),
        ("bad.jsonl.gz", PACKED[".gz"](b'\n{"token_ids": [-1]}\n'), "line 2, token 0: id -1 is outside"),
        ("bad.npz", npz(token_ids=[1, 2, -3], doc_offsets=[0, 1, 3]), "document 1, token 1: id -3 is outside"),
        ("bad.parquet", table(token_ids=[[], [1], [-4]]), "row 3, token 0: id -4 is outside"),
        ("bad.npy", npy(np.array([-5])), "the array, token 0: id -5 is outside"),
        ("bad.md", b"ab\xff", "the file is not UTF-8 at byte 2"),
        ("bad.csv", b"", "the ending says what a file holds"),
    ],
)
def test_of_several_files_one_that_is_wrong_is_named_with_the_place_and_nothing_is_added(
    name: str, content: bytes, complaint: str, server: Server, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "good.jsonl").write_text('{"token_ids": [1]}\n')
    (tmp_path / name).write_bytes(content)
    failed = draftd("corpus", "add", "docs", tmp_path / "good.jsonl", tmp_path / name, tmp_path / "good.jsonl", *server)
    assert only_line(failed).startswith(f"draftd: {tmp_path / name}: {complaint}")
    assert tokens(server) == {}
    until(lambda: jobs(served)[-1]["state"] == "failed")


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"token_ids": [1]}\n')
    failed = draftd("corpus", "add", "docs", tmp_path / "docs.jsonl", "--http", "http://127.0.0.1:1")
    assert only_line(failed) == "draftd: http://127.0.0.1:1: Connection refused; is a server running there?"
    for url in ("http://[::1", "127.0.0.1:x", "ftp://127.0.0.1", ""):
        failed = draftd("corpus", "list", "--http", url)
        assert only_line(failed) == f"draftd: --http {url!r}: should be like http://127.0.0.1:8470"


def test_a_server_that_ends_before_it_answers_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        command = [*COMMAND, "corpus", "list", "--http", url]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment({})) as process:
            connection, _ = listening.accept()
            connection.recv(65536)
            connection.close()
            error = process.communicate(timeout=SECONDS)[1]
    assert error == f"draftd: {url}/list_external_corpora: the server ended before it answered\n"


def test_a_body_that_the_server_does_not_want_is_said(tmp_path: Path) -> None:
    """It closes the connection, and its answer is lost while the rest is being sent."""
    (tmp_path / "docs.jsonl").write_bytes(b'{"token_ids": [1]}\n' * (4 << 20))
    with serving(tmp_path / "data", DRAFTD_CORPORA__MAX_UPLOAD_BYTES="1MiB") as served:
        failed = draftd("corpus", "add", "docs", tmp_path / "docs.jsonl", "--http", served.endpoints["http"])
    assert "corpora.max_upload_bytes" in only_line(failed)


def test_another_server_is_told_apart(tmp_path: Path) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    (tmp_path / "list_external_corpora").write_text("<html>")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever).start()
        url = f"http://127.0.0.1:{other.server_port}"
        listed, failed = draftd("corpus", "list", "--http", url), draftd("corpus", "remove", "x", "--http", url)
        other.shutdown()
    assert only_line(listed) == f"draftd: {url}/list_external_corpora: not an answer of draftd"
    assert only_line(failed).startswith(f"draftd: {url}/remove_external_corpus: 501")


def test_no_corpora_are_said_in_words(server: Server) -> None:
    listed = draftd("corpus", "list", *server)
    assert (listed.returncode, listed.stdout) == (0, "")
    assert listed.stderr == f"tenant {server[-1]!r} has no corpus for model 'default'\n"


def test_a_text_is_deleted_by_the_name_of_its_file(served: Served, tmp_path: Path) -> None:
    server = ("--http", served.endpoints["http"], "--tenant", "text", "--model", "named")
    (tmp_path / "a.md").write_text("the cat")
    (tmp_path / "b.txt.gz").write_bytes(PACKED[".gz"](b"sat on"))
    for name in ("a.md", "b.txt.gz"):
        assert draftd("corpus", "add", "docs", tmp_path / name, *server).returncode == 0
    deleted = draftd("corpus", "delete", "docs", "--document", "a.md", *server)
    assert deleted.stdout == "deleted 1 document with 2 tokens\n", deleted.stderr
    assert tokens(server) == {"docs": 2}


def test_an_archive_that_cannot_be_written_is_named_as_the_file_it_is(server: Server, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.arange(7))
    assert draftd("corpus", "add", "docs", tmp_path / "ids.npy", *server).returncode == 0
    absent = tmp_path / "absent" / "archive"
    assert only_line(draftd("corpus", "export", absent, *server)).startswith(f"draftd: {absent}.part: No such file")
    assert "has no corpus" in only_line(draftd("corpus", "export", tmp_path / "archive", *server, "--model", "other"))
    assert [path.name for path in tmp_path.iterdir()] == ["ids.npy"]


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
        assert process.stderr is not None
        assert "interrupted while sending; only what is sent whole is added" in process.stderr.read()
    until(lambda: jobs(served)[-1]["state"] == "failed")
    assert tokens(server) == {}


def test_the_server_is_found_by_the_config(served: Served, tmp_path: Path) -> None:
    address = served.endpoints["http"].removeprefix("http://")
    listed = draftd("corpus", "list", DRAFTD_LISTEN__HTTP=address)
    assert listed.returncode == 0, listed.stderr
    (tmp_path / "draftd.toml").write_text(f'[listen]\nhttp = "{address}"\n')
    listed = draftd("corpus", "list", DRAFTD_CONFIG=str(tmp_path / "draftd.toml"))
    assert listed.returncode == 0, listed.stderr
