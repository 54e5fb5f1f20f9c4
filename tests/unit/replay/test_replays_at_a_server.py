"""Where a replay's server is none, or ends, and what a replay leaves at one."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from draftd.demo.sample import SAMPLE
from draftd.demo.server import running_server
from draftd.replay import ReplayError, ReplayOptions, compare, replay_file, run
from draftd.replay.sessions import at_server

MATHEMATICS = SAMPLE / "specbench_math.jsonl.gz"
LITTLE = ReplayOptions(requests=2, budget=8)


def test_an_endpoint_that_is_none_is_refused() -> None:
    with pytest.raises(ReplayError, match="http://localhost"):
        run([MATHEMATICS], LITTLE, endpoint="http://localhost:1")


@pytest.mark.parametrize("endpoint", ["ipc://{folder}/nobody.sock", "tcp://127.0.0.1:1", "grpc+unix:{folder}/nobody"])
def test_an_endpoint_of_nobody_is_said_before_anything_is_replayed(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("draftd.replay.sessions.CHECK_SECONDS", 0.2)
    endpoint = endpoint.format(folder=tmp_path)
    with pytest.raises(ReplayError, match=f"no server answers at {re.escape(endpoint)} .*`draftd serve`"):
        run([MATHEMATICS], LITTLE, endpoint=endpoint)
    assert capsys.readouterr().err == ""


def test_a_server_that_ends_fails_the_replay() -> None:
    with ExitStack() as end:
        with running_server() as server:
            client = end.enter_context(at_server("w", server.endpoint))
        client.deadline = 0.2
        with pytest.raises(ReplayError, match=r"no draft at token \d+: (UNREACHABLE|LATE)"):
            replay_file(MATHEMATICS, client, LITTLE)


def test_what_a_replay_leaves_at_a_server_can_be_deleted_as_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, report = tmp_path / "own [bold]'y'.jsonl.gz", tmp_path / "report.json"
    file.symlink_to(MATHEMATICS)
    with running_server() as server:
        compare([file], LITTLE, ["learned", "ngram_bfs", "ngram"], endpoint=server.endpoint, json_file=report)
        printed = capsys.readouterr()
        said = [line.partition("delete it: draftd ")[2] for line in printed.err.splitlines()]
        assert len(said) == 2, "plain lookup asks no server"
        for line in said:
            words = [sys.executable, "-m", "draftd", *shlex.split(line), "--http", server.http]
            deleted = subprocess.run(words, capture_output=True, text=True, check=True)
            assert deleted.stdout.startswith("deleted 2 documents")
    assert "own [bold]'y'" in printed.out
    assert json.loads(report.read_text())["settings"]["endpoint"] == server.endpoint
