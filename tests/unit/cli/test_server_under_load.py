"""A real server while uploads come, break, and outlast it."""

import json
import socket
import threading
import urllib.request
from pathlib import Path

import numpy as np
import psutil
import pytest

from draftd.client import Client
from tests.unit.cli.processes import SECONDS, Served, serving

MEBIBYTE = 1 << 20


def call(served: Served, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
    request = urllib.request.Request(served.endpoints["http"] + path, json.dumps(body).encode() if body else None)
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        fields: dict[str, object] = json.load(response)
    return fields


def upload(served: Served, body: bytes, length: int) -> socket.socket:
    """A connection that has sent the head of a post that announces `length` bytes, and `body`; the server has it."""
    host, port = served.endpoints["http"].removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=SECONDS)
    head = f"POST /add_external_corpus HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
    connection.sendall(head.encode())
    assert b"100" in connection.recv(100)  # the server asks for the body: it is within the call
    connection.sendall(body)
    return connection


def test_steps_are_answered_while_a_corpus_comes_and_goes_and_its_memory_is_returned(tmp_path: Path) -> None:
    ids = np.random.default_rng(7).integers(0, 100_000, 2_000_000, dtype=np.int32)
    np.savez(tmp_path / "docs.npz", token_ids=ids, doc_offsets=np.arange(0, 2_000_001, 1000))
    posts: list[dict[str, object]] = [
        {"corpus_id": "file", "file_path": str(tmp_path / "docs.npz")},
        {"corpus_id": "body", "token_chunks": [ids.tolist()]},
    ]
    with (
        serving(tmp_path / "data", DRAFTD_CORPORA__DIRECTORIES=json.dumps([str(tmp_path)])) as served,
        Client(served.endpoints["zmq"], deadline=10.0) as client,
    ):
        process = psutil.Process(served.process.pid)
        request = client.open("request", [1, 2, 3], wait=True)
        before = process.memory_info().rss
        done = threading.Event()

        def step_until_done() -> None:
            stepped = request
            while not done.is_set():
                stepped.step([7], budget=8)
                if stepped.length > 1000:  # on a slow machine its text would outgrow the corpus that is measured
                    stepped = client.open("request", [1, 2, 3])

        stepping = threading.Thread(target=step_until_done)
        stepping.start()
        try:
            for post in posts:
                call(served, "/add_external_corpus", post)
                loaded = process.memory_info().rss
                call(served, "/remove_external_corpus", {"corpus_id": post["corpus_id"]})
                after = process.memory_info().rss
                assert loaded - before > 8 * MEBIBYTE  # 6 bytes a token
                assert after - before < (loaded - before) / 2
        finally:
            done.set()
            stepping.join(SECONDS)
        counters = client.health().counters
        assert counters.steps > 0
        assert (counters.late, counters.unreachable, counters.refused) == (0, 0, 0)


def test_an_upload_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        with upload(served, b'{"corpus_id": "half", "token_chunks": [[1, 2', 1000):
            pass
        assert call(served, "/add_external_corpus", {"corpus_id": "whole", "token_chunks": [[1]]})["success"]
        assert call(served, "/list_external_corpora")["corpus_token_counts"] == {"whole": 1}
        status, log = served.stop()
        assert status == 0
        assert "Traceback" not in log


def test_an_upload_under_way_may_end_within_shutdown_seconds(tmp_path: Path) -> None:
    body = b'{"token_chunks": [[1, 2, 3]]}'
    with (
        serving(tmp_path, DRAFTD_LISTEN__SHUTDOWN_SECONDS=str(SECONDS)) as served,
        upload(served, body[:10], len(body)) as connection,
    ):
        served.process.terminate()
        assert served.process.stderr is not None
        for line in served.process.stderr:
            if "SIGTERM: stopping" in line:
                break
        connection.sendall(body[10:])
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        assert b"HTTP/1.1 200" in answer
        assert b'"loaded_token_count":3' in answer
        assert served.process.wait(SECONDS) == 0


@pytest.mark.parametrize("seconds", ["0.1", "1"])
def test_an_upload_that_takes_longer_is_cut_off(seconds: str, tmp_path: Path) -> None:
    with (
        serving(tmp_path, DRAFTD_LISTEN__SHUTDOWN_SECONDS=seconds) as served,
        upload(served, b"{", 1000),
    ):
        status, log = served.stop()
        assert status == 0
        assert "Traceback" not in log
