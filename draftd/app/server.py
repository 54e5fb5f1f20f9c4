"""The composition root: every part of a server, and the order in which they start and stop."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

import uvloop
from prometheus_client import CollectorRegistry, ProcessCollector

from draftd.app.data_directory import DataDirectory
from draftd.app.problem import StartError
from draftd.config import Settings
from draftd.corpora import CorpusLibrary, OverLimit
from draftd.engine import Engine, LimitExceeded
from draftd.ingest import CorpusKey, IngestError, Loader, LoaderError
from draftd.observe import facts
from draftd.observe.cpus import cpu_count
from draftd.observe.metrics import EngineCollector
from draftd.observe.readiness import Readiness
from draftd.storage import VersionError
from draftd.transport.grpc_corpora import CorporaService
from draftd.transport.grpc_server import GrpcServer
from draftd.transport.http_app import Admin, admin_app
from draftd.transport.http_server import HttpServer
from draftd.transport.loads import Loads
from draftd.transport.ring_server import RingServer
from draftd.transport.zmq_server import ZmqServer
from draftd.wire.ring import ring_path

Endpoints = dict[str, str]  # kind ("zmq", "grpc", "http") to endpoint


def serve(settings: Settings, ready: Callable[[Endpoints], None]) -> None:
    """Serves until SIGTERM or SIGINT. `ready` is told the endpoints once all of them answer. Raises StartError."""
    with DataDirectory(settings.data_directory()) as directory:
        uvloop.run(_run(settings, directory, ready))


async def _run(settings: Settings, directory: DataDirectory, ready: Callable[[Endpoints], None]) -> None:
    await Server(settings, directory).run(ready)


class Server:
    """One life of a server. Made on the event loop that it runs on."""

    def __init__(self, settings: Settings, directory: DataDirectory) -> None:
        listen = settings.listen
        given = {"zmq": listen.zmq, "grpc": listen.grpc, "http": listen.http}
        self._wanted = {kind: directory.endpoint(endpoint) for kind, endpoint in given.items() if endpoint}
        self._settings = settings
        self._threads = listen.threads or cpu_count()
        self._readiness = Readiness((*self._wanted, "corpora"))
        try:
            self._engine = Engine(
                settings.engine,
                settings.drafting,
                settings.pacing,
                in_flight=settings.history.in_flight,
                sources=settings.sources,
            )
        except ValueError as error:
            raise StartError(str(error)) from None
        self._loader = Loader(processes=cpu_count())
        self._library = CorpusLibrary(self._engine, self._loader, settings, directory.path, directory.scratch)
        self._loads = Loads(self._library, settings.corpora)
        self._endpoints: Endpoints = {}
        self._stops: list[Callable[[], Awaitable[None]]] = []

    async def run(self, ready: Callable[[Endpoints], None]) -> None:
        stop = _stop_signal()
        try:
            if await _done_before(stop, self._start()):
                endpoints = {kind: self._endpoints[kind] for kind in self._wanted}
                ready(endpoints)
                facts.serving(endpoints)
                await stop.wait()
        finally:
            await self._stop()
        facts.stopped()

    async def _start(self) -> None:
        """HTTP first, so that /healthz answers while corpora load; verifiers are let in when all are there."""
        await self._listen("http", self._start_http)
        await asyncio.to_thread(self._load_corpora)
        self._readiness.up("corpora")
        await self._listen("zmq", self._start_zmq)
        await self._listen("grpc", self._start_grpc)

    async def _listen(self, kind: str, start: Callable[[str], Awaitable[str]]) -> None:
        if endpoint := self._wanted.get(kind):
            try:
                self._endpoints[kind] = await start(endpoint)
            except OSError as error:
                raise StartError(f"{kind} {endpoint}: {(error.strerror or str(error)).lower()}") from None
            self._readiness.up(kind)

    async def _start_http(self, address: str) -> str:
        metrics = CollectorRegistry()
        metrics.register(EngineCollector(self._engine.statistics))
        metrics.register(ProcessCollector(registry=None))
        admin = Admin(engine=self._engine, loads=self._loads, readiness=self._readiness, metrics=metrics)
        server = HttpServer(admin_app(admin), address, self._settings.listen.shutdown_seconds)
        endpoint = await server.start()
        self._stops.append(server.stop)
        return endpoint

    async def _start_zmq(self, endpoint: str) -> str:
        if self._settings.listen.shared_memory and endpoint.startswith("ipc://"):
            self._start_ring(ring_path(endpoint))  # first: a client that finds none stays with ZMQ
        server = ZmqServer(
            self._engine,
            endpoint,
            max_frame_bytes=self._settings.engine.max_frame_bytes,
            threads=self._threads,
        )
        server.start()
        self._stops.append(lambda: asyncio.to_thread(server.stop, self._settings.listen.shutdown_seconds))
        return server.endpoint

    def _start_ring(self, path: Path) -> None:
        server = RingServer(self._engine, path, max_frame_bytes=self._settings.engine.max_frame_bytes)
        try:
            server.start()
        except OSError as error:
            facts.ring_failed(error)
        else:
            self._stops.append(lambda: asyncio.to_thread(server.stop, self._settings.listen.shutdown_seconds))

    async def _start_grpc(self, address: str) -> str:
        server = GrpcServer(
            self._engine,
            address,
            max_frame_bytes=self._settings.engine.max_frame_bytes,
            corpora=CorporaService(self._loads, self._readiness),
            threads=self._threads,
        )
        await server.start()
        self._stops.append(lambda: server.stop(self._settings.listen.shutdown_seconds))
        return server.endpoint

    def _load_corpora(self) -> None:
        try:
            known = self._library.open_tokenizers(self._settings.tokenizers)
        except (IngestError, LoaderError) as error:
            raise StartError(str(error)) from None
        for tokenizer in known:
            self._engine.know_tokenizer(
                tokenizer.tenant, tokenizer.model, tokenizer.fingerprint, tokenizer.vocabulary_size
            )
        try:
            self._library.open()
        except (LimitExceeded, OverLimit, VersionError, OSError) as error:
            raise StartError(f"data_dir {self._settings.data_directory()}: {error}") from None
        configured = {
            CorpusKey(tenant=corpus.tenant, model=corpus.model, adapter=corpus.adapter, corpus_id=corpus.id): corpus
            for corpus in self._settings.corpora.load
        }
        self._library.remove_configured_except(configured)
        for key, corpus in configured.items():
            try:
                self._library.load_configured(key, corpus.path)
            except (IngestError, LoaderError, LimitExceeded, OverLimit, OSError) as error:
                raise StartError(f"corpus {corpus.id!r} from {corpus.path}: {error}") from None

    async def _stop(self) -> None:
        """Transports stop together, each after the answers under way; then nothing needs the engine any more."""
        self._readiness.stopping()
        try:
            await asyncio.gather(*(stop() for stop in self._stops))
            await self._loads.stop()
        finally:
            self._loader.close()
            # What finished last is on its way into the histories.
            await asyncio.to_thread(self._engine.settle, self._settings.listen.shutdown_seconds)
            await asyncio.to_thread(self._library.close)
            self._engine.close()


def _stop_signal() -> asyncio.Event:
    """Set by SIGTERM and SIGINT."""
    stop = asyncio.Event()

    def received(name: str) -> None:
        facts.stopping(name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, received, number.name)
    return stop


async def _done_before(stop: asyncio.Event, work: Coroutine[None, None, None]) -> bool:
    """Whether `work` ended before `stop` was set; otherwise it is cancelled. Raises what `work` raises."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not working.done():
        working.cancel()
        return False
    working.result()
    return True
