"""Answers over HTTP: what a call returns, or what went wrong in the shape of its reply."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from draftd.corpora import OverLimit
from draftd.engine import LimitExceeded
from draftd.ingest import Cancelled, IngestError, LoaderError, TooLarge
from draftd.observe import facts
from draftd.observe.readiness import Readiness
from draftd.transport.disk import DiskError, DiskFull, in_callers_words
from draftd.transport.loads import Busy

Shape = dict[str, Any]


class NotFound(LookupError):
    """There is no such thing. The text is one line."""


# What an error means to the client; the first that fits.
_STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (IngestError, HTTPStatus.BAD_REQUEST),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Cancelled, HTTPStatus.CONFLICT),
    (Busy, HTTPStatus.TOO_MANY_REQUESTS),
    (LimitExceeded, HTTPStatus.INSUFFICIENT_STORAGE),
    (OverLimit, HTTPStatus.INSUFFICIENT_STORAGE),
    (DiskFull, HTTPStatus.INSUFFICIENT_STORAGE),
    (DiskError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (LoaderError, HTTPStatus.INTERNAL_SERVER_ERROR),
)


@dataclass(frozen=True, slots=True)
class Answers:
    """Calls that need the server to be ready."""

    readiness: Readiness
    empty: Shape = field(default_factory=dict)  # what a failed call's reply holds beside the message

    async def of(self, request: Request, call: Callable[[], Awaitable[Response]]) -> Response:
        if waiting := self.readiness.waiting_for():
            # Before, tokenizers may be unknown yet, and text would land in the wrong namespace.
            return self._failure(
                HTTPStatus.SERVICE_UNAVAILABLE, f"the server is not ready, it waits for {', '.join(waiting)}"
            )
        try:
            return await call()
        except asyncio.CancelledError:  # only by the server's stop, when the time for answers under way is over
            return self._failure(HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping")
        except Exception as error:  # noqa: BLE001 - a client must get the shape it knows, and the log the traceback
            told = in_callers_words(error)
            if told is not error:
                facts.disk_failed(f"HTTP {request.url.path}", error)
            for kind, status in _STATUSES:
                if isinstance(told, kind):
                    return self._failure(status, str(told))
            facts.call_failed(f"HTTP {request.url.path}", error)
            return self._failure(HTTPStatus.INTERNAL_SERVER_ERROR, "a defect of the server; its log says more")

    def _failure(self, status: HTTPStatus, message: str) -> JSONResponse:
        return JSONResponse({"success": False, **self.empty, "message": message}, status)


def success(fields: Shape, status: HTTPStatus = HTTPStatus.OK) -> JSONResponse:
    return JSONResponse({"success": True, **fields}, status)


async def no_such_call(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
    message = f"{request.method} {request.url.path}: {HTTPStatus(status).phrase.lower()}"
    return JSONResponse({"success": False, "message": message}, status)
