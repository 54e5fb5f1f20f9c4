"""The Corpora service over gRPC: packed columns in, appended to files as they come."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio

from draftd.corpora import OverLimit
from draftd.engine import LimitExceeded
from draftd.ingest import Ack, Cancelled, IngestError, LoadColumns, LoaderError, LoadRequest, Mode, Selection, TooLarge
from draftd.ingest.columns import ColumnsWriter
from draftd.ingest.jobs import Job
from draftd.ingest.post import corpus_key
from draftd.ingest.selection import parsed_selection
from draftd.observe import facts
from draftd.observe.readiness import Readiness
from draftd.transport.disk import DiskError, DiskFull, in_callers_words
from draftd.transport.http_body import SILENCE
from draftd.transport.loads import Busy, Loads
from draftd.wire.corpora import DeleteReply, DeleteRequest, LoadHeader, LoadPart, LoadReply

SERVICE = "draftd.v1.Corpora"
HEAR_OUT = 2.0  # seconds

# What an error means to the client; the first that fits.
_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (TooLarge, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (IngestError, grpc.StatusCode.INVALID_ARGUMENT),
    (Busy, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (OverLimit, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (LimitExceeded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Cancelled, grpc.StatusCode.ABORTED),
    (LoaderError, grpc.StatusCode.INTERNAL),
    (DiskFull, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (DiskError, grpc.StatusCode.INTERNAL),
)

Context = grpc.aio.ServicerContext[Any, Any]
Parts = AsyncIterator[LoadPart]
Reply = TypeVar("Reply")
Choice = TypeVar("Choice", bound=StrEnum)


class CorporaService:
    """Its calls block nobody: loads and deletions are done by threads."""

    def __init__(self, loads: Loads, readiness: Readiness) -> None:
        self._loads = loads
        self._readiness = readiness

    def handlers(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "Load": grpc.stream_unary_rpc_method_handler(self._load, LoadPart.FromString, LoadReply.SerializeToString),
            "Delete": grpc.unary_unary_rpc_method_handler(
                self._delete, DeleteRequest.FromString, DeleteReply.SerializeToString
            ),
        }

    async def _load(self, parts: Parts, context: Context) -> LoadReply:
        async def call() -> LoadReply:
            first = await _next(parts)
            if first is None or not first.HasField("header"):
                raise IngestError("the first part should have a header")
            header = first.header
            fields = _address(header) | {"corpus_id": header.corpus_id}
            key, tokenizer = corpus_key(fields), header.tokenizer if header.HasField("tokenizer") else None
            ack, mode = _choice("ack", header.ack, Ack.VISIBLE), _choice("mode", header.mode, Mode.ADD)

            async def receive(job: Job, folder: Path) -> LoadRequest:
                await _receive(first, parts, folder, self._loads.settings.max_upload_bytes, job)
                return LoadRequest(key=key, tokenizer=tokenizer, source=LoadColumns(folder=folder), mode=mode)

            job = await self._loads.load(key, receive, ack)
            return LoadReply(job_id=job.id, documents=job.documents, tokens=job.tokens)

        async def call_and_hear_out() -> LoadReply:
            try:
                return await call()
            except Exception:
                await _hear_out(parts)
                raise

        return await self._answer("Load", call_and_hear_out, context)

    async def _delete(self, request: DeleteRequest, context: Context) -> DeleteReply:
        async def call() -> DeleteReply:
            deleted = await asyncio.to_thread(self._loads.library.delete, _selection(request))
            return DeleteReply(documents=deleted.documents, tokens=deleted.tokens, unmatched=deleted.unmatched)

        return await self._answer("Delete", call, context)

    async def _answer(self, name: str, call: Callable[[], Awaitable[Reply]], context: Context) -> Reply:
        if waiting := self._readiness.waiting_for():
            await _abort(
                context, grpc.StatusCode.UNAVAILABLE, f"the server is not ready, it waits for {', '.join(waiting)}"
            )
        try:
            return await call()
        except Exception as error:  # noqa: BLE001 - the client must get a status it knows, and the log the traceback
            told = in_callers_words(error)
            if told is not error:
                facts.disk_failed(f"gRPC {SERVICE}/{name}", error)
            for kind, code in _CODES:
                if isinstance(told, kind):
                    await _abort(context, code, str(told))
            facts.call_failed(f"gRPC {SERVICE}/{name}", error)
            await _abort(context, grpc.StatusCode.INTERNAL, "a defect of the server; its log says more")


async def _receive(first: LoadPart, parts: Parts, folder: Path, max_bytes: int, job: Job) -> None:
    """Appends what comes to the columns in the folder. Raises IngestError or LoaderError."""
    part: LoadPart | None = first
    with ColumnsWriter(folder) as columns:
        while part is not None:
            content = {
                "token_ids": part.token_ids,
                "document_ends": part.document_ends,
                "labels": part.labels,
                "label_ends": part.label_ends,
            }
            job.received(sum(map(len, content.values())))
            if job.bytes_read > max_bytes:
                raise TooLarge(f"the columns are longer than {max_bytes} bytes, the limit corpora.max_upload_bytes")
            try:
                columns.append_packed(**content)
            except OSError as error:
                raise LoaderError(f"the columns can't be kept in {folder}: {error.strerror}") from None
            if part.last:
                return
            part = await _next(parts)
    # gRPC itself doesn't tell the end of a stream from the end of its client.
    raise IngestError("the stream ended before its last part")


async def _hear_out(parts: Parts) -> None:
    """Drops what else is sent, for a while: some clients make an error of their own of a stream they can't finish."""
    with suppress(TimeoutError):
        async with asyncio.timeout(HEAR_OUT):
            async for _ in parts:
                pass


async def _next(parts: Parts) -> LoadPart | None:
    try:
        async with asyncio.timeout(SILENCE):
            return await anext(parts, None)
    except TimeoutError:
        raise IngestError(f"the stream stopped for {SILENCE:.0f} s before its last part") from None


def _address(message: LoadHeader | DeleteRequest) -> dict[str, str]:
    given = {"tenant": message.tenant, "model": message.model, "adapter": message.adapter}
    return {name: value for name, value in given.items() if value}


def _choice(name: str, value: str, default: Choice) -> Choice:
    try:
        return type(default)(value) if value else default
    except ValueError:
        raise IngestError(f"{name}: {value!r} should be one of {', '.join(type(default))}") from None


def _selection(request: DeleteRequest) -> Selection:
    fields: dict[str, Any] = {"history": request.history, **_address(request)}
    for name in ("tokenizer", "corpus_id", "group", "older_than"):
        if request.HasField(name):
            fields[name] = getattr(request, name)
    for name in ("document_ids", "request_ids"):
        if request.HasField(name):
            fields[name] = tuple(getattr(request, name).names)
    return parsed_selection(fields)


async def _abort(context: Context, code: grpc.StatusCode, message: str) -> NoReturn:
    await context.abort(code, message)
    raise AssertionError("unreachable: abort raises")
