"""The demo's own server process starts, answers, and leaves nothing behind."""

import json
import os
import urllib.request
from pathlib import Path

import numpy as np
import psutil
import pytest

from draftd.demo.server import Server, ServerError, running_server


def folder_of(server: Server) -> Path:
    return Path(server.endpoint.removeprefix("ipc://")).parent


def process_of(server: Server) -> psutil.Process:
    """The server writes its process id into the lock of its directory."""
    return psutil.Process(int((folder_of(server) / "lock").read_text()))


def test_it_is_ready_takes_a_corpus_and_is_gone_afterwards() -> None:
    with running_server() as server:
        folder, process = folder_of(server), process_of(server)
        with urllib.request.urlopen(f"{server.http}/readyz") as reply:
            assert reply.status == 200
        documents = [np.array([1, 2, 3], np.int32), np.array([4, 5], np.int32)]
        assert server.post_corpus("demo", "m", "c", documents) == 5
        with urllib.request.urlopen(f"{server.http}/list_external_corpora?tenant=demo&model=m") as reply:
            assert json.load(reply)["corpus_token_counts"] == {"c": 5}
        server.check()
    assert not process.is_running()
    assert not folder.exists()


def test_settings_of_the_environment_are_not_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_LISTEN__HTTP", "")
    monkeypatch.setenv("DRAFTD_NO_SUCH_OPTION", "1")
    with running_server() as server:
        server.check()


def test_a_refused_corpus_says_why() -> None:
    with running_server() as server, pytest.raises(ServerError, match=r"corpus c was refused: .*-1"):
        server.post_corpus("demo", "m", "c", [np.array([-1], np.int32)])


def test_a_server_that_died_is_noticed() -> None:
    with running_server() as server:
        process = process_of(server)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # seen dead, and left for its parent to collect
        with pytest.raises(ServerError, match="ended with status -9"):
            server.check()
