"""The same frames over gRPC: a bidirectional stream and a unary call; the Corpora service, health and reflection."""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from draftd.engine import Answer, Engine
from draftd.transport import grpc_corpora, unix_socket
from draftd.transport.grpc_corpora import CorporaService

SERVICE = "draftd.v1.Drafter"
MOST_DEFERRED = 1024  # answers that wait for indexing; beyond, an answer goes out at once
EXPIRE_SECONDS = 1.0

Context = grpc.aio.ServicerContext[bytes, bytes]


class GrpcServer:
    """Serves `engine` at HOST:PORT (port 0: a free one) or unix:PATH, on the running event loop."""

    def __init__(
        self,
        engine: Engine,
        address: str,
        *,
        max_frame_bytes: int,
        threads: int = 1,
        corpora: CorporaService | None = None,
    ) -> None:
        """At most `threads` verifiers are answered at the same time. Without `corpora` there are only frames."""
        self.endpoint = address  # after start: with the real port
        self._engine = engine
        self._corpora = corpora
        self._services = (SERVICE,) if corpora is None else (SERVICE, grpc_corpora.SERVICE)
        # The engine answers a frame above the limit with an error; far above, gRPC ends the stream.
        limit = 2 * max_frame_bytes
        options = [
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # a taken port is an error, not a share of it
        ]
        self._server = grpc.aio.server(options=options)
        self._health = health.aio.HealthServicer()
        self._indexing = Indexing(engine)
        self._streams: set[Stream] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="draftd-grpc")
        self._expiring: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Binds and serves until `stop`. Raises OSError, for example when the address is in use."""
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Stream": grpc.stream_stream_rpc_method_handler(self._stream),  # no codec: frames stay bytes
            "Step": grpc.unary_unary_rpc_method_handler(self._step),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        if self._corpora is not None:
            corpora = grpc.method_handlers_generic_handler(grpc_corpora.SERVICE, self._corpora.handlers())
            self._server.add_generic_rpc_handlers((corpora,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        self.endpoint = self._bind(self.endpoint)
        await self._server.start()
        self._indexing.start()
        self._expiring = asyncio.create_task(self._expire())
        for name in ("", *self._services):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace: float) -> None:
        """Ends every stream after the answers under way, for which it waits up to `grace` seconds, and closes."""
        await self._health.enter_graceful_shutdown()
        for stream in self._streams:
            stream.stop()
        await self._server.stop(grace)
        if self._expiring is not None:
            self._expiring.cancel()
        self._indexing.stop()
        self._threads.shutdown()

    def _bind(self, address: str) -> str:
        if address.startswith("unix:"):
            path = Path(address.removeprefix("unix:"))
            unix_socket.claim(path)
            self._add_port(address)
            path.chmod(unix_socket.SOCKET_MODE)
            return address
        host, _, port = address.rpartition(":")
        _check_free(host.strip("[]"), int(port))
        return f"{host}:{self._add_port(address)}"

    def _add_port(self, address: str) -> int:
        try:
            return self._server.add_insecure_port(address)
        except RuntimeError:
            # The reasons that can be told are found before; what is left is a race, or a path gRPC can't take.
            raise OSError(errno.EADDRNOTAVAIL, "gRPC cannot bind this address; its log says why", address) from None

    async def _step(self, frame: bytes, _context: Context) -> bytes:
        answer = await self._answer(frame)
        await self._indexing.reached(answer.ticket)
        return answer.reply

    async def _answer(self, frame: bytes) -> Answer:
        """A verifier that is alone is answered by the loop itself: a hand-over costs more than a small step."""
        if len(self._streams) == 1:
            return self._engine.handle(frame)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._engine.handle, frame)

    async def _stream(self, _frames: object, context: Context) -> None:
        stream = Stream(self._engine, self._answer, self._indexing, context)
        self._streams.add(stream)
        try:
            await stream.run()
        finally:
            self._streams.discard(stream)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            self._engine.expire()


class Indexing:
    """Wakes coroutines when the engine's indexing has come far enough."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fd = engine.indexed_fileno()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._fd, self._progress)

    def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)

    async def reached(self, ticket: int) -> None:
        """Returns once everything sent before `ticket` is indexed; at once for 0, or if too many wait already."""
        if ticket and len(self._waiting) < MOST_DEFERRED and not self._engine.indexed(ticket):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((ticket, future))
            await future

    def _progress(self) -> None:
        os.eventfd_read(self._fd)
        still_waiting = []
        for ticket, future in self._waiting:
            if not self._engine.indexed(ticket):
                still_waiting.append((ticket, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still_waiting


class Stream:
    """One verifier's stream: answers in order, but for those that wait for indexing."""

    def __init__(
        self, engine: Engine, answer: Callable[[bytes], Awaitable[Answer]], indexing: Indexing, context: Context
    ) -> None:
        self._engine = engine
        self._answer = answer
        self._indexing = indexing
        self._context = context
        self._task = asyncio.current_task()
        self._reading = False
        self._stopping = False
        self._writing = asyncio.Lock()  # gRPC takes one write at a time
        self._deferred: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the verifier ends the stream, or `stop`; answers under way are sent before it returns."""
        try:
            while not self._stopping and (frame := await self._read()) is not None:
                answer = await self._answer(frame)
                if answer.ticket == 0 or self._engine.indexed(answer.ticket):
                    await self._write(answer.reply)
                    continue
                task = asyncio.create_task(self._write_when_indexed(answer))
                self._deferred.add(task)
                task.add_done_callback(self._deferred.discard)
            if self._deferred:
                await asyncio.wait(self._deferred)
        finally:
            for task in self._deferred:
                task.cancel()  # the stream is gone, or the server's patience

    def stop(self) -> None:
        self._stopping = True
        if self._reading and self._task is not None:
            self._task.cancel()

    async def _read(self) -> bytes | None:
        """The next frame; None: there is none, or no more are taken."""
        self._reading = True
        try:
            frame: object = await self._context.read()  # bytes, or EOF
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            return None
        finally:
            self._reading = False
        return frame if isinstance(frame, bytes) else None

    async def _write_when_indexed(self, answer: Answer) -> None:
        await self._indexing.reached(answer.ticket)
        await self._write(answer.reply)

    async def _write(self, reply: bytes) -> None:
        async with self._writing:
            await self._context.write(reply)


def _check_free(host: str, port: int) -> None:
    """Raises OSError when that address can't be bound; gRPC itself would tell only its log why."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host, port), family=family).close()
