"""Loads on their way: what becomes of them when they are called off, or their clients go."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from draftd.ingest import Ack, Cancelled, CorpusKey, LoadFile, LoadRequest
from draftd.ingest.jobs import Job, State
from draftd.transport.http_app import Admin, admin_app
from draftd.transport.http_server import HttpServer
from draftd.transport.loads import Receive
from tests.children import children
from tests.unit.http.conftest import Endpoint

KEY = CorpusKey(tenant="default", model="default", adapter="", corpus_id="docs")


def from_file(path: Path) -> Receive:
    async def receive(_job: Job, _folder: Path) -> LoadRequest:
        return LoadRequest(key=KEY, source=LoadFile(path=path))

    return receive


async def in_state(endpoint: Endpoint, *states: State) -> list[Job]:
    """The jobs, once they are so."""
    while [job.state for job in endpoint.loads.jobs.all()] != list(states):  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.01)
    return endpoint.loads.jobs.all()


@pytest.fixture
async def reading(endpoint: Endpoint, tmp_path: Path) -> AsyncIterator["asyncio.Task[Job]"]:
    """A load of lines that don't come."""
    os.mkfifo(tmp_path / "slow.jsonl")
    loading = asyncio.create_task(endpoint.loads.load(KEY, from_file(tmp_path / "slow.jsonl"), Ack.VISIBLE))
    with await asyncio.to_thread((tmp_path / "slow.jsonl").open, "w"):
        yield loading


async def test_a_load_is_cancelled_while_it_is_read(endpoint: Endpoint, reading: "asyncio.Task[Job]") -> None:
    (job,) = await in_state(endpoint, State.READING)
    await endpoint.loads.cancel(job)
    assert (job.state, job.problem) == (State.CANCELLED, None)
    with pytest.raises(Cancelled):
        await reading
    assert not children()
    assert await endpoint.counts() == {}


async def test_a_load_is_cancelled_while_it_waits_for_others(
    endpoint: Endpoint, reading: "asyncio.Task[Job]", tmp_path: Path
) -> None:
    await in_state(endpoint, State.READING)
    (tmp_path / "ids.jsonl").write_text('{"token_ids": [1]}\n')
    while not endpoint.loads._turns.locked():  # as if other loads had the other turns
        await endpoint.loads._turns.acquire()
    waiting = asyncio.create_task(endpoint.loads.load(KEY, from_file(tmp_path / "ids.jsonl"), Ack.VISIBLE))
    first, second = await in_state(endpoint, State.READING, State.WAITING)
    await endpoint.loads.cancel(second)
    assert second.state is State.CANCELLED
    with pytest.raises(Cancelled):
        await waiting
    await endpoint.loads.cancel(first)
    with pytest.raises(Cancelled):
        await reading
    assert await endpoint.counts() == {}


async def test_a_load_goes_on_when_its_caller_has_gone(endpoint: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "ids.jsonl").write_text('{"token_ids": [1]}\n')
    calling = asyncio.create_task(endpoint.loads.load(KEY, from_file(tmp_path / "ids.jsonl"), Ack.VISIBLE))
    await in_state(endpoint, State.READING)
    calling.cancel()
    await in_state(endpoint, State.DONE)
    assert await endpoint.counts() == {"docs": 1}


async def test_what_is_under_way_ends_with_the_server(endpoint: Endpoint, reading: "asyncio.Task[Job]") -> None:
    (job,) = await in_state(endpoint, State.READING)
    await endpoint.loads.stop()
    assert job.state is State.CANCELLED
    with pytest.raises(Cancelled):
        await reading
    await endpoint.loads.stop()  # nothing is left to call off


async def test_a_client_that_breaks_off_adds_nothing(endpoint: Endpoint) -> None:
    app = admin_app(Admin(endpoint.engine, endpoint.loads, endpoint.readiness, None))  # type: ignore[arg-type]
    server = HttpServer(app, "127.0.0.1:0", shutdown_seconds=1.0)
    url = httpx.URL(await server.start())
    try:
        with socket.create_connection((url.host, url.port)) as connection:
            head = (
                "POST /corpora/docs/documents HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
                "Content-Length: 1000\r\n\r\n"
            )
            connection.sendall(head.encode() + b'{"token_ids": [1]}\n')
            (job,) = await in_state(endpoint, State.RECEIVING)
        await in_state(endpoint, State.FAILED)
        assert job.problem == "the connection broke before the end of the body"
        assert await endpoint.counts() == {}
    finally:
        await server.stop()
