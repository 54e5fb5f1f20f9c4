"""A `draftd serve` process of the demo's own."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from draftd.config.load import PREFIX
from draftd.replay.traces import TokenArray

START_SECONDS = 30.0
STOP_SECONDS = 15.0
POST_SECONDS = 60.0


class DemoError(RuntimeError):
    """The demo cannot go on. The message says why, in one line."""


class ServerError(DemoError):
    """The server did not start, answered with an error or ended by itself."""


class Server:
    """A process that serves. `endpoint` is for verifiers, `http` (http://HOST:PORT) for everybody else."""

    def __init__(self, process: subprocess.Popen[str], endpoint: str, log: Path) -> None:
        self.endpoint = endpoint
        self._process = process
        self._log = log
        self.http = self._read_http_address()

    def check(self) -> None:
        """Raises ServerError if the process has ended."""
        status = self._process.poll()
        if status is not None:
            raise ServerError(f"the server ended with status {status}: {self._last_words()}")

    def post_corpus(self, tenant: str, model: str, corpus_id: str, documents: Sequence[TokenArray]) -> int:
        """Posts token ids over HTTP and returns how many the server has loaded, once they are in use."""
        corpus = {
            "corpus_id": corpus_id,
            "token_chunks": [document.tolist() for document in documents],
            "tenant": tenant,
            "model": model,
        }
        request = urllib.request.Request(
            f"{self.http}/add_external_corpus", json.dumps(corpus).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=POST_SECONDS) as reply:
                return int(json.load(reply)["loaded_token_count"])
        except urllib.error.HTTPError as error:
            raise ServerError(f"corpus {corpus_id} was refused: {error.read().decode(errors='replace')}") from error
        except OSError as error:
            self.check()
            raise ServerError(f"corpus {corpus_id} could not be posted to {self.http}: {error}") from error

    def _read_http_address(self) -> str:
        """Waits for the line in which a server that is ready names its endpoints."""
        killer = threading.Timer(START_SECONDS, self._process.kill)  # ends the loop below, whatever the server does
        killer.start()
        try:
            for line in self._process.stdout or ():
                if address := re.search(r"http://\S+:\d+", line):
                    return address[0]
        finally:
            killer.cancel()
        self._process.wait()
        raise ServerError(f"the server did not start: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it wrote nothing to its log"


@contextmanager
def running_server() -> Iterator[Server]:
    """A server on sockets of its own, for as long as the context lasts; nothing is left behind.

    Signals of the terminal don't reach it: who started it stops it, even by being killed. Nor do settings of the
    environment, which are for other servers. Raises ServerError if it does not start.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        endpoint, log = f"ipc://{folder}/draftd.sock", Path(folder, "server.log")
        dies_with_us = ["setpriv", "--pdeathsig", "TERM"]
        command = [*dies_with_us, sys.executable, "-m", "draftd", "serve", "--data-dir", folder]
        with log.open("w") as log_file:
            process = subprocess.Popen(
                [*command, "--zmq", endpoint, "--http", "127.0.0.1:0"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                start_new_session=True,
            )
        with process:
            try:
                yield Server(process, endpoint, log)
            finally:
                _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
