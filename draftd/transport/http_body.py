"""Request bodies: a small one in memory, that of a posted corpus in a file."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from starlette.requests import ClientDisconnect, Request

from draftd.ingest import IngestError, LoaderError

SMALL_BODY = 64 << 10  # bytes
MOST_DROPPED = 16  # times the limit; who sends more finds the connection closed
SILENCE = 30.0  # seconds that a client may pause within a body


@asynccontextmanager
async def body_in_file(request: Request, folder: Path, max_bytes: int) -> AsyncIterator[Path]:
    """Writes the body to a file in `folder` that lives as long as the context. Raises IngestError or LoaderError."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(tempfile.NamedTemporaryFile(dir=folder, suffix=".json"))
            async for chunk in _limited(request, max_bytes, "corpora.max_body_bytes"):
                file.write(chunk)
            file.flush()
        except OSError as error:
            raise LoaderError(f"the body can't be kept in {folder}: {error.strerror}") from None
        yield Path(file.name)


async def small_body(request: Request) -> bytes:
    """Raises IngestError."""
    return b"".join([chunk async for chunk in _limited(request, SMALL_BODY, "for this call")])


async def _limited(request: Request, max_bytes: int, limit_name: str) -> AsyncIterator[bytes]:
    received = 0
    async for chunk in _never_silent(request):
        received += len(chunk)
        if received <= max_bytes:
            yield chunk
        elif received > MOST_DROPPED * max_bytes + SMALL_BODY:
            break
        # In between, the rest is read and dropped: most clients hear an answer only after they sent all.
    if received > max_bytes:
        raise IngestError(f"the body is longer than {max_bytes} bytes, the limit {limit_name}")


async def _never_silent(request: Request) -> AsyncIterator[bytes]:
    chunks = request.stream()
    try:
        while True:
            async with asyncio.timeout(SILENCE):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    except TimeoutError:
        raise IngestError(f"the body stopped for {SILENCE:.0f} s before its end") from None
    except ClientDisconnect:
        raise IngestError("the connection broke before the end of the body") from None
