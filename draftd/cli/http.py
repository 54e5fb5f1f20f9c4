"""Calls to the HTTP endpoint of a server."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from draftd.cli.failure import in_words
from draftd.observe.words import counted

PART = 1 << 20  # bytes
JSON = {"Content-Type": "application/json"}


class HttpError(Exception):
    """The call failed. The text is one line: what the server said, or why it could not be asked."""


def call(
    url: str,
    body: bytes | IO[bytes] | Iterable[bytes] | None = None,
    headers: Mapping[str, str] = JSON,
    method: str | None = None,
    timeout: float = 600.0,
) -> dict[str, Any]:
    """The JSON of the reply; POST if there is a body, which may be a file or parts that are made as they are sent."""
    request = urllib.request.Request(url, body, dict(headers), method=method)
    with _answered(request, timeout) as reply:
        try:
            fields = json.load(reply)
        except ValueError:
            fields = None
    if not isinstance(fields, dict):
        raise HttpError(f"{url.partition('?')[0]}: not an answer of draftd")
    return fields


def download(url: str, timeout: float = 600.0) -> Iterator[tuple[bytes, int]]:
    """The body of the reply, in parts, each with the bytes of all. Raises HttpError, also when it ends too early."""
    with _answered(urllib.request.Request(url), timeout) as reply:
        if "content-length" not in reply.headers:
            raise HttpError(f"{url.partition('?')[0]}: not an answer of draftd")
        size, expected = 0, int(reply.headers["content-length"])
        while part := reply.read(PART):
            size += len(part)
            yield part, expected
        if size != expected:
            raise HttpError(f"{url.partition('?')[0]}: the connection broke after {counted(size, 'byte')}")


@contextmanager
def _answered(request: urllib.request.Request, timeout: float) -> Iterator[http.client.HTTPResponse]:
    url = request.full_url.partition("?")[0]
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            yield reply
    except urllib.error.HTTPError as error:
        raise HttpError(_said(url, error)) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, BrokenPipeError | ConnectionResetError):
            raise HttpError(
                f"{url}: the server closed the connection before all was sent: it stops, or this is more than its "
                "corpora.max_upload_bytes"
            ) from None
        reason = in_words(error.reason) if isinstance(error.reason, Exception) else error.reason
        raise HttpError(f"{request.type}://{request.host}: {reason}; is a server running there?") from None
    except http.client.RemoteDisconnected:
        raise HttpError(f"{url}: the server ended before it answered") from None
    except http.client.BadStatusLine:
        raise HttpError(f"{url}: not an HTTP server") from None
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(f"{url}: {in_words(error)}") from None


def _said(url: str, error: urllib.error.HTTPError) -> str:
    try:
        fields = json.load(error)
        if waiting := fields.get("waiting_for"):
            return f"{url}: not ready, waiting for {', '.join(waiting)}"
        return str(fields["message"])
    except (ValueError, KeyError, AttributeError, OSError):
        return f"{url}: {error.code} {error.reason}"
