"""Which server, and whose corpora on it: the options that say so, and calls made with them."""

import json
import urllib.parse
from pathlib import Path
from typing import Annotated, Any

import typer

from draftd.cli.failure import Failure, failing_on
from draftd.cli.http import HttpError, call
from draftd.config import ConfigError, load_settings

Url = Annotated[
    str | None,
    typer.Option("--http", metavar="URL", help="The server; default: listen.http of the config and environment."),
]
Tenant = Annotated[str, typer.Option(help="Tenant it belongs to.")]
Model = Annotated[str, typer.Option(help="Model it belongs to.")]
Adapter = Annotated[str, typer.Option(help="Adapter it belongs to.")]
Tokenizer = Annotated[
    str | None, typer.Option(metavar="FINGERPRINT", help="Tokenizer it belongs to; default: the model's, or none.")
]


def server(url: str | None, config: Path | None) -> str:
    """Its URL. Raises Failure."""
    if url is not None:
        full = url.rstrip("/") if "://" in url else f"http://{url}"
        if not _is_usable(full):
            raise Failure(f"--http {url!r}: should be like http://127.0.0.1:8470")
        return full
    with failing_on(ConfigError):
        address = load_settings(config).listen.http
    if not address:
        raise Failure("the config turns HTTP off: give the server's URL")
    host, _, port = address.rpartition(":")
    return f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{port}"


def _is_usable(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def namespace(tenant: str, model: str, adapter: str, tokenizer: str | None) -> dict[str, str]:
    """The fields of a call that say whose they are."""
    stated = {} if tokenizer is None else {"tokenizer": tokenizer}
    return {"tenant": tenant, "model": model, "adapter": adapter} | stated


def post(server: str, path: str, fields: dict[str, Any]) -> None:
    """Prints what the server says. Raises Failure."""
    with failing_on(HttpError):
        reply = call(f"{server}/{path}", json.dumps(fields).encode())
    typer.echo(reply["message"])
