"""serve, config, health: running a server and looking at one."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from draftd.cli.address import server
from draftd.cli.failure import Failure, failing_on
from draftd.cli.http import HttpError, call
from draftd.cli.options import ConfigFile
from draftd.config import ConfigError, Settings, default_config, load_settings


def serve(
    zmq: Annotated[str | None, typer.Option(metavar="ipc://PATH|tcp://HOST:PORT", help="ZMQ endpoint.")] = None,
    grpc: Annotated[
        str | None, typer.Option(metavar="unix:PATH|HOST:PORT", help="gRPC endpoint; default: none.")
    ] = None,
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="HTTP endpoint.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of this server alone: lock, sockets, corpora, histories."),
    ] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="ID=FILE", help="Corpus to load before ready; may be repeated.")
    ] = None,
    corpus_max_tokens: Annotated[
        str | None, typer.Option(metavar="N", help="Most tokens of one corpus, for example 10M or 500k.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Run a server until SIGTERM. What is not given comes from DRAFTD_ variables and the config file.

    Prints one line with its endpoints when it is ready.
    """
    given = _given(
        data_dir=data_dir,
        listen={"zmq": zmq, "grpc": grpc, "http": http},
        corpora={"max_tokens": corpus_max_tokens},
    )
    with failing_on(ConfigError):
        settings = _with_corpora(load_settings(config, given), config, given, corpus or [])

    from draftd.app import StartError
    from draftd.app import serve as run
    from draftd.observe import logs

    logs.set_up(settings.log.level, settings.log.format)
    with failing_on(StartError):
        run(settings, _announce)


def config() -> None:
    """Print the default config file: every option, what it does, and its value."""
    typer.echo(default_config(), nl=False)


def health(
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="ipc://, tcp://, grpc://, unix: or http:// endpoint; default: listen.http of config and environment.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long to wait for an answer.", min=0.001)] = 3.0,
    config: ConfigFile = None,
) -> None:
    """Ask a server whether it serves: status 0 if so, 1 if not."""
    endpoint = endpoint or server(None, config)
    if endpoint.startswith(("http://", "https://")):
        with failing_on(HttpError):
            call(f"{endpoint.rstrip('/')}/readyz", timeout=timeout)
        typer.echo(f"ok: {endpoint} is ready")
        return

    from draftd.client import Client

    with failing_on(ValueError), Client(endpoint, verifier="health", deadline=timeout) as client:
        seen = client.check(timeout)
    if seen.state != "serving":
        raise Failure(f"{endpoint}: {seen.last_error or seen.state}")
    typer.echo(f"ok: draftd {seen.drafter_version} at {endpoint}")


def _announce(endpoints: dict[str, str]) -> None:
    listed = " ".join(f"{kind} {endpoint}" for kind, endpoint in endpoints.items())
    sys.stdout.write(f"draftd {version('draftd')} ready: {listed}\n")
    sys.stdout.flush()


def _given(**tree: Any) -> dict[str, Any]:
    """The options that were given, without those that were not."""
    given: dict[str, Any] = {}
    for name, value in tree.items():
        inner = _given(**value) if isinstance(value, dict) else value
        if inner not in (None, {}):
            given[name] = inner
    return given


def _with_corpora(settings: Settings, file: Path | None, given: dict[str, Any], corpora: list[str]) -> Settings:
    """Those of the command line come after those of the file."""
    if not corpora:
        return settings
    load: list[dict[str, Any]] = [corpus.model_dump() for corpus in settings.corpora.load]
    for corpus in corpora:
        corpus_id, separator, path = corpus.partition("=")
        if not (corpus_id and separator and path):
            raise ConfigError(f"--corpus {corpus!r}: should be ID=FILE")
        load.append({"id": corpus_id, "path": path})
    return load_settings(file, {**given, "corpora": {**given.get("corpora", {}), "load": load}})
