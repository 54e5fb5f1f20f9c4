"""The routes of the HTTP endpoint: corpora, health, metrics. An error has the JSON shape of its call's reply."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from draftd.corpora import CorpusLibrary
from draftd.engine import LimitExceeded
from draftd.ingest import IngestError, LoaderError
from draftd.ingest.loader import NICENESS
from draftd.ingest.post import corpus_key, json_object, owner, refuse_unknown_fields
from draftd.observe import facts
from draftd.observe.readiness import Readiness
from draftd.transport.http_body import body_in_file, small_body
from draftd.wire import PROTOCOL

# Corpora that are received and loaded at the same time; more wait, with their bodies unread.
PARALLEL_LOADS = 2

Shape = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Admin:
    """What the routes work on. `incarnation` is that of the engine."""

    library: CorpusLibrary
    readiness: Readiness
    metrics: CollectorRegistry
    max_body_bytes: int
    incarnation: int


def admin_app(admin: Admin) -> Starlette:
    corpora = _Corpora(admin)
    status = _Status(admin)
    return Starlette(
        routes=[
            Route("/add_external_corpus", corpora.add, methods=["POST"]),
            Route("/remove_external_corpus", corpora.remove, methods=["POST"]),
            Route("/list_external_corpora", corpora.list, methods=["GET"]),
            Route("/healthz", status.healthz),
            Route("/readyz", status.readyz),
            Route("/version", status.version),
            Route("/metrics", status.metrics),
        ],
        exception_handlers={HTTPException: _no_such_call},
    )


class _Corpora:
    def __init__(self, admin: Admin) -> None:
        self._library = admin.library
        self._readiness = admin.readiness
        self._max_body_bytes = admin.max_body_bytes
        self._loads = asyncio.Semaphore(PARALLEL_LOADS)
        self._threads = ThreadPoolExecutor(PARALLEL_LOADS, "corpora", initializer=_let_drafting_go_first)

    async def add(self, request: Request) -> JSONResponse:
        async def call() -> Shape:
            async with (
                self._loads,
                body_in_file(request, self._library.scratch, self._max_body_bytes) as body,
            ):
                loading = asyncio.get_running_loop().run_in_executor(self._threads, self._library.add_posted, body)
                loaded = await loading
            return {
                "corpus_id": loaded.key.corpus_id,
                "message": f"corpus {loaded.key} holds {loaded.tokens} tokens",
                "loaded_token_count": loaded.tokens,
            }

        return await self._answer(request, call, {"corpus_id": "", "loaded_token_count": 0})

    async def remove(self, request: Request) -> JSONResponse:
        async def call() -> Shape:
            fields = json_object(await small_body(request))
            refuse_unknown_fields(fields, ("corpus_id", "tenant", "model", "adapter", "tokenizer"))
            if fields.get("corpus_id") is None:
                raise IngestError("corpus_id: is missing")
            key = corpus_key(fields)
            await asyncio.to_thread(self._library.remove, key, owner(fields).tokenizer)  # waits for no load
            return {"message": f"corpus {key} is removed"}

        return await self._answer(request, call, {})

    async def list(self, request: Request) -> JSONResponse:
        async def call() -> Shape:
            fields = dict(request.query_params)
            if len(fields) < len(request.query_params.multi_items()):
                raise IngestError("a query parameter is given twice")
            refuse_unknown_fields(fields, ("tenant", "model", "adapter", "tokenizer"))
            counts = self._library.token_counts(owner(fields))
            return {"corpus_token_counts": counts, "message": f"{len(counts)} corpora"}

        return await self._answer(request, call, {"corpus_token_counts": {}})

    async def _answer(self, request: Request, call: Callable[[], Awaitable[Shape]], empty: Shape) -> JSONResponse:
        """What `call` returns, or what went wrong in the same shape: `empty` with a message."""
        if waiting := self._readiness.waiting_for():
            # Before, tokenizers may be unknown yet, and text would land in the wrong namespace.
            message = f"the server is not ready, it waits for {', '.join(waiting)}"
            return JSONResponse({"success": False, **empty, "message": message}, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            return JSONResponse({"success": True, **await call()})
        except (IngestError, LimitExceeded) as error:
            status, message = HTTPStatus.BAD_REQUEST, str(error)
        except LoaderError as error:
            status, message = HTTPStatus.INTERNAL_SERVER_ERROR, str(error)
        except asyncio.CancelledError:  # only by the server's stop, when the time for answers under way is over
            status, message = HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping"
        except Exception as error:  # noqa: BLE001 - a client must get the shape it knows, and the log the traceback
            facts.request_failed(request.url.path, error)
            status, message = HTTPStatus.INTERNAL_SERVER_ERROR, "a defect of the server; its log says more"
        return JSONResponse({"success": False, **empty, "message": message}, status)


class _Status:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def healthz(self, _request: Request) -> JSONResponse:
        """The process lives and its event loop turns."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, _request: Request) -> JSONResponse:
        waiting = self._admin.readiness.waiting_for()
        status = HTTPStatus.SERVICE_UNAVAILABLE if waiting else HTTPStatus.OK
        return JSONResponse({"ready": not waiting, "waiting_for": waiting}, status)

    async def version(self, _request: Request) -> JSONResponse:
        return JSONResponse(
            {"version": version("draftd"), "protocol": PROTOCOL, "incarnation": f"{self._admin.incarnation:016x}"}
        )

    async def metrics(self, _request: Request) -> Response:
        text = generate_latest(self._admin.metrics) + generate_latest(facts.REGISTRY)
        return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _no_such_call(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
    message = f"{request.method} {request.url.path}: {HTTPStatus(status).phrase.lower()}"
    return JSONResponse({"success": False, "message": message}, status)


def _let_drafting_go_first() -> None:
    # Linux keeps a niceness per thread.
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
