"""Calls to the HTTP endpoint of a server."""

import http.client
import json
import urllib.error
import urllib.request
from typing import IO, Any

from draftd.cli.failure import in_words


class HttpError(Exception):
    """The call failed. The text is one line: what the server said, or why it could not be asked."""


def call(url: str, body: bytes | IO[bytes] | None = None, length: int = 0, timeout: float = 600.0) -> dict[str, Any]:
    """The JSON of the reply; POST if there is a body. `length` in bytes is that of a body that is a file."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    if length:
        request.add_header("Content-Length", str(length))
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            fields = json.load(reply)
    except urllib.error.HTTPError as error:
        raise HttpError(_said(url, error)) from None
    except urllib.error.URLError as error:
        reason = error.reason
        raise HttpError(f"{url}: {in_words(reason) if isinstance(reason, Exception) else reason}") from None
    except http.client.BadStatusLine:
        raise HttpError(f"{url}: not an HTTP server") from None
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(f"{url}: {in_words(error)}") from None
    except ValueError as error:
        raise HttpError(f"{url}: {error}") from None
    if not isinstance(fields, dict):
        raise HttpError(f"{url}: not an answer of draftd")
    return fields


def _said(url: str, error: urllib.error.HTTPError) -> str:
    try:
        fields = json.load(error)
        if waiting := fields.get("waiting_for"):
            return f"{url}: not ready, waiting for {', '.join(waiting)}"
        return str(fields["message"])
    except (ValueError, KeyError, AttributeError, OSError):
        return f"{url}: {error.code} {error.reason}"
