"""An HTTP endpoint in this process over a real engine and loader; calls go through the application itself."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from draftd.config import CorporaSettings, EngineSettings, LimitSettings, Settings, TokenizerSettings
from draftd.corpora import CorpusLibrary
from draftd.engine import Engine
from draftd.ingest import Loader
from draftd.observe.metrics import EngineCollector
from draftd.observe.readiness import Readiness
from draftd.transport.http_app import Admin, admin_app
from draftd.transport.loads import Loads


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The parts behind the calls."""

    engine: Engine
    loader: Loader
    library: CorpusLibrary
    loads: Loads
    readiness: Readiness
    http: httpx.AsyncClient

    async def add(self, **fields: Any) -> tuple[int, dict[str, Any]]:
        return _answer(await self.http.post("/add_external_corpus", json=fields))

    async def remove(self, **fields: Any) -> tuple[int, dict[str, Any]]:
        return _answer(await self.http.post("/remove_external_corpus", json=fields))

    async def counts(self, **query: str) -> dict[str, int]:
        status, reply = _answer(await self.http.get("/list_external_corpora", params=query))
        assert status == 200
        counts: dict[str, int] = reply["corpus_token_counts"]
        return counts


def _answer(response: httpx.Response) -> tuple[int, dict[str, Any]]:
    return response.status_code, response.json()


Start = Callable[..., Endpoint]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Makes endpoints with the given settings of corpora, `tokenizer` and `max_corpora`; ready unless they wait."""
    started: list[Endpoint] = []

    def with_settings(
        *,
        tokenizer: Path | None = None,
        max_corpora: int = 8,
        limits: LimitSettings = LimitSettings(),  # noqa: B008 - frozen
        waiting_for: tuple[str, ...] = (),
        **corpora: Any,
    ) -> Endpoint:
        settings = Settings(
            engine=EngineSettings(max_corpora=max_corpora), limits=limits, corpora=CorporaSettings(**corpora)
        )
        engine = Engine(settings.engine)
        loader = Loader(processes=1)
        directory = tmp_path / f"data-{len(started)}"
        (directory / "incoming").mkdir(parents=True)
        library = CorpusLibrary(engine, loader, settings, directory, directory / "incoming")
        if tokenizer is not None:
            library.open_tokenizers((TokenizerSettings(path=tokenizer),))
        library.open()
        metrics = CollectorRegistry()
        metrics.register(EngineCollector(engine.statistics))
        readiness = Readiness(waiting_for)
        loads = Loads(library, settings.corpora)
        app = admin_app(Admin(engine, loads, readiness, metrics))
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://draftd")
        started.append(Endpoint(engine, loader, library, loads, readiness, http))
        return started[-1]

    yield with_settings
    for endpoint in started:
        await endpoint.http.aclose()
        endpoint.loader.close()
        endpoint.library.close()
        endpoint.engine.close()
        assert list(endpoint.library.scratch.iterdir()) == [], "uploads were left behind"


@pytest.fixture
def endpoint(start: Start) -> Endpoint:
    """One with default settings."""
    return start()
