"""The other commands, as processes."""

import re
from pathlib import Path

import numpy as np
import pytest

from draftd.config import default_config
from tests.unit.cli.processes import draftd, only_line, serving


def test_version() -> None:
    assert re.fullmatch(r"draftd \d+\.\d+\.\d+\n", draftd("--version").stdout)


def test_config_prints_the_default_file_and_serve_takes_it(tmp_path: Path) -> None:
    printed = draftd("config")
    assert (printed.returncode, printed.stdout) == (0, default_config())
    (tmp_path / "draftd.toml").write_text(printed.stdout)
    with serving(tmp_path / "data", "--config", tmp_path / "draftd.toml") as served:
        assert served.stop()[0] == 0


def test_corpus_add_list_remove(tmp_path: Path) -> None:
    np.savez(tmp_path / "ids.npz", token_ids=[1, 2, 3], doc_offsets=[0, 1, 3])
    (tmp_path / "more.jsonl").write_text('{"token_ids": [4, 5]}\n')
    owner = ("--tenant", "acme", "--model", "m", "--adapter", "a")
    with serving(tmp_path / "data") as served:
        server = ("--http", served.endpoints["http"], *owner)
        added = draftd("corpus", "add", "docs", tmp_path / "ids.npz", tmp_path / "more.jsonl", *server)
        assert added.returncode == 0, added.stderr
        assert added.stdout == "corpus 'docs' of acme/m, adapter a holds 5 tokens\n"
        assert re.search(r"docs\W+5\b", draftd("corpus", "list", *server).stdout)
        assert "docs" not in draftd("corpus", "list", "--http", served.endpoints["http"]).stdout
        again = draftd("corpus", "add", "docs", tmp_path / "ids.npz", *server)
        assert "exists already; remove it first" in only_line(again)
        assert draftd("corpus", "remove", "docs", *server).stdout.endswith("is removed\n")
        assert "does not exist" in only_line(draftd("corpus", "remove", "docs", *server))


def test_corpus_finds_the_server_by_its_config(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        address = served.endpoints["http"].removeprefix("http://")
        listed = draftd("corpus", "list", DRAFTD_LISTEN__HTTP=address)
        assert listed.returncode == 0, listed.stderr
        (tmp_path / "draftd.toml").write_text(f'[listen]\nhttp = "{address}"\n')
        listed = draftd("corpus", "list", DRAFTD_CONFIG=str(tmp_path / "draftd.toml"))
        assert listed.returncode == 0, listed.stderr


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "docs.jsonl: No such file or directory"),
        ("", "the files hold no document"),
        ('"text"\n{"token_ids": [1]}\n', "line 2: the files hold both text and token ids"),
        ('{"token_ids": 1}\n', "docs.jsonl: line 1: should be"),
        ('{"token_ids": [1]}\n', "http://127.0.0.1:1/add_external_corpus: Connection refused"),
    ],
)
def test_corpus_add_says_what_is_wrong_in_one_line(content: str | None, complaint: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "docs.jsonl").write_text(content)
    failed = draftd("corpus", "add", "docs", tmp_path / "docs.jsonl", "--http", "http://127.0.0.1:1")
    assert complaint in only_line(failed)


def test_replay_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    absent = tmp_path / "absent.jsonl"
    assert "absent.jsonl" in only_line(draftd("replay", absent))
    assert "--budget" in only_line(draftd("replay", absent, "--budget", "0"))
    assert "not both" in only_line(draftd("replay", absent, "--budget", "4", "--mean-budget", "4"))
    assert "draftd corpus add" in only_line(draftd("replay", absent, "--endpoint", "ipc:///x", "--corpus", absent))
    assert "directory" in only_line(draftd("replay", tmp_path))
    deep = tmp_path / "deep.jsonl"
    deep.write_text("[" * 200_000)
    assert "recursion" in only_line(draftd("replay", deep))
