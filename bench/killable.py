"""A server on a data directory of its own that is killed and started again, and what it holds."""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from draftd.config.load import PREFIX
from draftd.native import Segment
from draftd.storage import read_archive

CALL_SECONDS = 120.0

Documents = dict[str, tuple[int, ...]]  # token ids by label


class ServerDied(RuntimeError):
    """It did not answer, or not to the end."""


class ServerRefused(RuntimeError):
    """It answered with an error; the text is its message."""


@dataclass(slots=True)
class Contents:
    """What one tenant has: its corpora by name, and the documents of its history in their order."""

    corpora: dict[str, Documents] = field(default_factory=dict)
    history: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)


class KillableServer:
    """`draftd serve` on `folder`, which survives it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        """`settings`: environment variables without their prefix."""
        self.folder = folder
        self.endpoint = f"ipc://{folder}/draftd.sock"
        self.log = folder.with_name(f"{folder.name}.log")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        self._environment = inherited | {PREFIX + name: value for name, value in settings.items()}
        self._process: subprocess.Popen[str] | None = None
        self._http = ""

    def start(self) -> float:
        """How long it took until it said that it is ready, in seconds."""
        command = [sys.executable, "-m", "draftd", "serve", "--data-dir", str(self.folder), "--http", "127.0.0.1:0"]
        started = time.perf_counter()
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        seconds = time.perf_counter() - started
        if "ready" not in line:
            self._process.wait()
            raise ServerDied(f"the server did not start; see {self.log}")
        self._http = line.split()[-1]
        return seconds

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator does."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def add(self, tenant: str, corpus: str, documents: Documents) -> None:
        """Returns when drafts read them. Raises ServerDied or ServerRefused."""
        lines = (json.dumps({"id": label, "token_ids": tokens}) for label, tokens in documents.items())
        self._call(f"/corpora/{corpus}/documents?tenant={tenant}", "\n".join(lines).encode(), "application/x-ndjson")

    def add_file(self, tenant: str, corpus: str, content: bytes, content_type: str) -> None:
        """Raises ServerDied or ServerRefused."""
        self._call(f"/corpora/{corpus}/documents?tenant={tenant}", content, content_type)

    def delete(self, **selection: Any) -> None:
        """Returns when they are gone. Raises ServerDied or ServerRefused."""
        self._call("/delete_documents", json.dumps(selection).encode(), "application/json")

    def remove(self, tenant: str, corpus: str) -> None:
        """Raises ServerDied or ServerRefused."""
        body = json.dumps({"tenant": tenant, "corpus_id": corpus}).encode()
        self._call("/remove_external_corpus", body, "application/json")

    def export(self, tenant: str) -> bytes:
        """Raises ServerDied or ServerRefused."""
        return self._call(f"/export?{urllib.parse.urlencode({'tenant': tenant})}")

    def import_(self, archive: bytes) -> None:
        """Raises ServerDied or ServerRefused."""
        self._call("/import", archive, "application/octet-stream")

    def contents(self, tenant: str) -> Contents:
        """Raises ServerDied."""
        try:
            archive = self.export(tenant)
        except ServerRefused as refused:
            if "no corpus and no history" in str(refused):
                return Contents()
            raise
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "archive"
            path.write_bytes(archive)
            return _contents(path, Path(folder))

    def _call(self, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        request = urllib.request.Request(self._http + path, body, {"Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as reply:
                return bytes(reply.read())
        except urllib.error.HTTPError as error:
            raise ServerRefused(error.read().decode(errors="replace")) from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerDied(str(error)) from None


def _contents(archive: Path, scratch: Path) -> Contents:
    contents = Contents()
    for unpacked in read_archive(archive, scratch):
        documents = [row for path in unpacked.files.values() for row in _rows(path)]
        if unpacked.manifest.kind == "history":
            contents.history = documents
        else:
            contents.corpora[unpacked.manifest.name] = dict(documents)
            assert len(contents.corpora[unpacked.manifest.name]) == len(documents), "a document is there twice"
    return contents


def _rows(path: Path) -> list[tuple[str, tuple[int, ...]]]:
    segment = Segment.open(path)
    parts = np.split(segment.token_ids(), segment.document_ends()[:-1])
    return [(label, tuple(part.tolist())) for label, part in zip(segment.labels(), parts, strict=True)]
