"""A library over an engine that remembers, with a real data directory."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from draftd.config import Settings
from draftd.corpora import CorpusLibrary
from draftd.ingest import Ack, Cancellation, CorpusKey, Loaded, LoadRequest, LoadUpload, Mode, Progress, Selection
from draftd.wire import Namespace
from tests.unit.corpora.loader_here import LoaderHere
from tests.unit.corpora.recording import RecordingEngine

NAMESPACE = Namespace("acme", "m")
Documents = dict[str, list[int]]  # token ids by label
SMALL = {"limits": {"namespace_bytes": 1 << 20, "tenant_bytes": 1 << 21, "process_bytes": 1 << 23}}


def ids(*names: str, **fields: object) -> Selection:
    return Selection.model_validate(
        {"tenant": "acme", "model": "m", "corpus_id": "docs", "document_ids": names or None} | fields
    )


class Shelf:
    """A library and what is behind it, from one start to the next."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.settings = settings
        self.restart()

    def restart(self, **settings: Any) -> None:
        """As after a kill: nothing was closed, and nothing is remembered but what is on the disk."""
        self.settings |= settings
        self.engine = RecordingEngine()
        self.loader = LoaderHere()
        scratch = self.folder / "incoming"
        scratch.mkdir(exist_ok=True)
        options = Settings(**self.settings)
        self.library = CorpusLibrary(self.engine, self.loader, options, self.folder, scratch)
        self.library.open_tokenizers(options.tokenizers)
        self.library.open()

    def stop(self) -> None:
        self.loader.close()
        self.library.close()

    def add(
        self,
        documents: Documents,
        corpus_id: str = "docs",
        *,
        tenant: str = "acme",
        mode: Mode = Mode.ADD,
        on_ack: Callable[[Ack], None] = lambda _: None,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> Loaded:
        body = self.folder / f"body-{threading.get_ident()}.jsonl"
        lines = (json.dumps({"id": label, "token_ids": tokens}) for label, tokens in documents.items())
        body.write_text("\n".join(lines))
        request = LoadRequest(key=key(corpus_id, tenant), source=LoadUpload(body=body, name=body.name), mode=mode)
        return self.library.load(request, on_progress=on_progress, on_ack=on_ack, cancelled=Cancellation())

    def files(self, ending: str = "") -> list[Path]:
        """Of all collections."""
        return sorted((self.folder / "collections").glob(f"*/*{ending}"))

    def bytes_on_disk(self) -> bytes:
        paths = (path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith("body-"))
        return b"".join(path.read_bytes() for path in paths)


def key(corpus_id: str = "docs", tenant: str = "acme") -> CorpusKey:
    return CorpusKey(tenant=tenant, model="m", adapter="", corpus_id=corpus_id)


@pytest.fixture
def shelf(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shelf]:
    """Settings may be given as the parameter. Its own thread does no upkeep: tests call what they want done."""
    settings = {"history": {"flush_seconds": 3600.0}} | getattr(request, "param", {})
    shelf = Shelf(tmp_path, settings)
    yield shelf
    shelf.stop()
