"""Request bodies: a small one in memory, a long one in a file."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from starlette.requests import ClientDisconnect, Request

from draftd.ingest import IngestError, LoaderError, TooLarge

SMALL_BODY = 64 << 10  # bytes
MOST_DROPPED = 256 << 20  # bytes, and 16 times the limit; who sends more finds the connection closed
SILENCE = 30.0  # seconds that a client may pause within a body

OnBytes = Callable[[int], None]  # told how many more have arrived


async def body_in_file(request: Request, file: Path, max_bytes: int, limit_name: str, on_bytes: OnBytes) -> None:
    """Writes the body to a new file. Raises IngestError or LoaderError."""
    try:
        with file.open("xb", buffering=0) as kept:
            async for chunk in _limited(request, max_bytes, limit_name):
                kept.write(chunk)
                on_bytes(len(chunk))
    except OSError as error:
        raise LoaderError(f"the body can't be kept in {file.parent}: {error.strerror}") from None


async def small_body(request: Request, most: int = SMALL_BODY) -> bytes:
    """Raises IngestError."""
    return b"".join([chunk async for chunk in _limited(request, most, "for this call")])


async def _limited(request: Request, max_bytes: int, limit_name: str) -> AsyncIterator[bytes]:
    received = 0
    async for chunk in _never_silent(request):
        received += len(chunk)
        if received <= max_bytes:
            yield chunk
        elif received > max_bytes + min(16 * max_bytes, MOST_DROPPED) + SMALL_BODY:
            break
        # In between, the rest is read and dropped: most clients hear an answer only after they sent all.
    if received > max_bytes:
        raise TooLarge(f"the body is longer than {max_bytes} bytes, the limit {limit_name}")


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
