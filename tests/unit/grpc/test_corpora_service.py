"""The Corpora service: a real server on a socket, over a real library."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from draftd.config import LimitSettings
from draftd.transport import grpc_corpora, loads
from draftd.transport.grpc_corpora import CorporaService
from draftd.transport.grpc_server import GrpcServer
from draftd.wire.corpora import DeleteReply, DeleteRequest, LoadHeader, LoadPart, LoadReply, Names
from tests.unit.http.conftest import Endpoint, Start, start

__all__ = ["start"]  # a fixture

MEBIBYTE = 1 << 20


class Connection:
    """A client of the service, and the parts behind it."""

    def __init__(self, endpoint: Endpoint, channel: grpc.aio.Channel) -> None:
        self.endpoint = endpoint
        self.load = channel.stream_unary("/draftd.v1.Corpora/Load", LoadPart.SerializeToString, LoadReply.FromString)
        self.delete = channel.unary_unary(
            "/draftd.v1.Corpora/Delete", DeleteRequest.SerializeToString, DeleteReply.FromString
        )


Connect = Callable[[Endpoint], AbstractAsyncContextManager[Connection]]


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    @asynccontextmanager
    async def connected(endpoint: Endpoint) -> AsyncIterator[Connection]:
        service = CorporaService(endpoint.loads, endpoint.readiness)
        address = f"unix:{tmp_path}/grpc.sock"
        server = GrpcServer(endpoint.engine, address, max_frame_bytes=MEBIBYTE, corpora=service)
        await server.start()
        try:
            async with grpc.aio.insecure_channel(server.endpoint) as channel:
                yield Connection(endpoint, channel)
        finally:
            await server.stop(0)

    return connected


def i32(*values: int) -> bytes:
    return np.array(values, "<i4").tobytes()


def i64(*values: int) -> bytes:
    return np.array(values, "<i8").tobytes()


def header(**fields: str) -> LoadHeader:
    return LoadHeader(**({"corpus_id": "docs"} | fields))


def parts(*documents: list[int], labels: Iterable[str] = (), **fields: str) -> list[LoadPart]:
    """A document a part."""
    names = [label.encode() for label in labels]
    made = [LoadPart(header=header(**fields))]
    end = 0
    for document in documents:
        end += len(document)
        made.append(LoadPart(token_ids=i32(*document), document_ends=i64(end)))
    label_ends = np.cumsum([len(name) for name in names], dtype="<i8").tobytes()
    return [*made, LoadPart(labels=b"".join(names), label_ends=label_ends, last=True)]


async def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_documents_are_visible_when_the_answer_comes(start: Start, connect: Connect) -> None:
    async with connect(start()) as connection:
        reply = await connection.load(parts([1, 2], [3], labels=("a", "b"), tenant="acme"))
        assert (reply.documents, reply.tokens) == (2, 3)
        assert await connection.endpoint.counts(tenant="acme") == {"docs": 3}
        assert (await connection.endpoint.http.get(f"/jobs/{reply.job_id}")).json()["job"]["state"] == "done"


async def test_documents_are_deleted_by_their_ids(start: Start, connect: Connect) -> None:
    async with connect(start()) as connection:
        await connection.load(parts([1, 2], [3], [4, 5, 6], labels=("a", "b", "a")))
        nothing = await connection.delete(DeleteRequest(corpus_id="docs", document_ids=Names()))
        assert (nothing.documents, nothing.tokens) == (0, 0)
        deleted = await connection.delete(DeleteRequest(corpus_id="docs", document_ids=Names(names=["a", "x"])))
        assert (deleted.documents, deleted.tokens, list(deleted.unmatched)) == (2, 5, ["x"])
        assert await connection.endpoint.counts() == {"docs": 1}
        history = await connection.delete(DeleteRequest(history=True, group="g", request_ids=Names(names=["r"])))
        assert (history.documents, history.tokens) == (0, 0)
        code, message = await refused(connection.delete(DeleteRequest()))
        assert (code, message) == (grpc.StatusCode.INVALID_ARGUMENT, "give either corpus_id or history = true")
        _, message = await refused(connection.delete(DeleteRequest(corpus_id="docs", older_than=-1)))
        assert message == "older_than: -1 should be a time in unix seconds"


async def test_parts_may_be_cut_anywhere(start: Start, connect: Connect) -> None:
    tokens, ends = i32(1, 2, 3, 4), i64(1, 4)
    cut = [LoadPart(header=header(), token_ids=tokens[:1], document_ends=ends[:3])]
    cut += [LoadPart(token_ids=tokens[1:15]), LoadPart(document_ends=ends[3:]), LoadPart(token_ids=tokens[15:])]
    async with connect(start()) as connection:
        reply = await connection.load([*cut, LoadPart(last=True)])
        assert (reply.documents, reply.tokens) == (2, 4)


async def test_a_level_can_be_asked_for(start: Start, connect: Connect) -> None:
    async with connect(start()) as connection:
        for ack in ("received", "durable"):
            reply = await connection.load(parts([1, 2], ack=ack))
            assert reply.tokens == (0 if ack == "received" else 2)
            while (job := connection.endpoint.loads.jobs.get(reply.job_id)) and job.ended_at is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await connection.endpoint.counts() == {"docs": 4}


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ([], "the first part should have a header"),
        ([LoadPart(token_ids=i32(1), last=True)], "the first part should have a header"),
        (parts([1], corpus_id=""), "the id of the corpus, corpus_id, is empty"),
        (parts([1], ack="seen"), "ack: 'seen' should be one of received, durable, visible"),
        (parts([1], mode="replace"), "mode: 'replace' should be one of add, create"),
        (parts([1], tenant="a\n"), "has characters that can't be printed"),
        (parts([1])[:-1], "the stream ended before its last part"),
        (parts([1], [2, -3]), "document 1, token 1: id -3 is outside the vocabulary"),
        (parts([1], labels=("a", "b")), "label_ends: 2 for 1 document"),
        ([LoadPart(header=header(), token_ids=b"123", last=True)], "token_ids: 3 bytes are no whole number"),
        (parts(), "the corpus is empty"),
    ],
)
async def test_what_is_wrong_is_an_invalid_argument_and_adds_nothing(
    sent: list[LoadPart], complaint: str, start: Start, connect: Connect
) -> None:
    async with connect(start()) as connection:
        code, message = await refused(connection.load(sent))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert complaint in message
        assert await connection.endpoint.counts() == {}


async def test_what_is_full_is_resource_exhausted_with_the_figures(
    start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = start(limits=LimitSettings.model_validate({"namespace_bytes": MEBIBYTE}), max_upload_bytes=3 * MEBIBYTE)
    async with connect(endpoint) as connection:
        random = np.random.default_rng(7).integers(0, 100_000, 1_000_000, np.int32)

        def columns(size: int) -> list[LoadPart]:
            ids = [LoadPart(token_ids=random[start : start + 100_000].tobytes()) for start in range(0, size, 100_000)]
            return [LoadPart(header=header(), document_ends=i64(size)), *ids, LoadPart(last=True)]

        code, message = await refused(connection.load(columns(500_000)))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "limits.namespace_bytes, 1.0MiB" in message
        code, message = await refused(connection.load(columns(1_000_000)))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "longer than 3145728 bytes, the limit corpora.max_upload_bytes" in message
        monkeypatch.setattr(loads, "MOST_LOADS", 0)
        code, message = await refused(connection.load(parts([1])))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert message.startswith("0 loads arrive, wait or run already")


async def test_before_it_is_ready_nothing_is_taken(start: Start, connect: Connect) -> None:
    async with connect(start(waiting_for=("corpora",))) as connection:
        for call in (connection.load(parts([1])), connection.delete(DeleteRequest(corpus_id="docs"))):
            code, message = await refused(call)
            assert code is grpc.StatusCode.UNAVAILABLE
            assert message == "the server is not ready, it waits for corpora"


async def _endless(begun: asyncio.Event) -> AsyncIterator[LoadPart]:
    yield LoadPart(header=header(), token_ids=i32(1, 2), document_ends=i64(2))
    begun.set()
    await asyncio.Event().wait()


async def test_a_client_that_goes_before_its_last_part_adds_nothing(start: Start, connect: Connect) -> None:
    begun = asyncio.Event()
    async with connect(start()) as connection:
        load = connection.load(_endless(begun))
        await begun.wait()
        while not (jobs := connection.endpoint.loads.jobs.all()):  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
        load.cancel()
        while jobs[0].ended_at is None:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
        assert (jobs[0].state, jobs[0].problem) == ("failed", "the stream ended before its last part")
        assert await connection.endpoint.counts() == {}


async def test_a_client_that_falls_silent_is_given_up(
    start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_corpora, "SILENCE", 0.1)
    async with connect(start()) as connection:
        code, message = await refused(connection.load(_endless(asyncio.Event())))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "the stream stopped for" in message
        assert await connection.endpoint.counts() == {}


async def test_a_defect_is_told_apart(start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connect(start()) as connection:
        monkeypatch.setattr(type(connection.endpoint.library), "load", None)
        code, message = await refused(connection.load(parts([1])))
        assert (code, message) == (grpc.StatusCode.INTERNAL, "a defect of the server; its log says more")


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, grpc.StatusCode.RESOURCE_EXHAUSTED), (errno.EIO, grpc.StatusCode.INTERNAL)],
)
async def test_a_disk_that_fails_is_said(
    number: int, expected: grpc.StatusCode, start: Start, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "/secret/path")

    async with connect(start()) as connection:
        for name in ("load", "delete"):
            monkeypatch.setattr(type(connection.endpoint.library), name, fail)
        for call in (connection.load(parts([1])), connection.delete(DeleteRequest(corpus_id="docs"))):
            code, message = await refused(call)
            assert (code, message) == (
                expected,
                f"the data directory failed: {os.strerror(number).lower()}; the server's log says more",
            )
