"""Transports in this process over one real engine, and raw connections to them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import grpc
import zmq

from draftd.client.ring_channel import RingChannel
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.transport.grpc_server import GrpcServer
from draftd.transport.ring_server import RingServer
from draftd.transport.zmq_server import ZmqServer
from draftd.wire.ring import ring_path

MAX_FRAME_BYTES = 1 << 16  # so that a frame above it is quickly made
WAIT_SECONDS = 30  # for answers that do come

Result = TypeVar("Result")
Exchange = Callable[[bytes], bytes]  # a frame to its answer


def small_engine() -> Engine:
    return Engine(EngineSettings(max_frame_bytes=MAX_FRAME_BYTES))


class LoopThread:
    """An event loop of its own for an asyncio server, as the composition root has one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-loop")
        self._thread.start()

    def run(self, work: Awaitable[Result]) -> Result:
        async def awaited() -> Result:
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(WAIT_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def zmq_served(
    engine: Engine, directory: Path, drain: float = 0.0, max_frame_bytes: int = MAX_FRAME_BYTES
) -> Iterator[str]:
    """The endpoint of a ZMQ server."""
    server = ZmqServer(engine, f"ipc://{directory}/zmq.sock", max_frame_bytes=max_frame_bytes)
    server.start()
    try:
        yield server.endpoint
    finally:
        server.stop(drain)


@contextmanager
def ring_served(
    engine: Engine, directory: Path, drain: float = 0.0, max_frame_bytes: int = MAX_FRAME_BYTES
) -> Iterator[str]:
    """The endpoint of a server that has shared memory alone."""
    endpoint = f"ipc://{directory}/only.sock"
    server = RingServer(engine, ring_path(endpoint), max_frame_bytes=max_frame_bytes)
    server.start()
    try:
        yield endpoint
    finally:
        server.stop(drain)


@contextmanager
def grpc_served(
    engine: Engine, directory: Path, drain: float = 0.0, max_frame_bytes: int = MAX_FRAME_BYTES
) -> Iterator[str]:
    """The endpoint of a gRPC server."""
    loop = LoopThread()

    async def make() -> GrpcServer:
        server = GrpcServer(engine, f"unix:{directory}/grpc.sock", max_frame_bytes=max_frame_bytes)
        await server.start()
        return server

    try:
        server = loop.run(make())
        yield server.endpoint
        loop.run(server.stop(drain))
    finally:
        loop.close()


@contextmanager
def zmq_connection(endpoint: str) -> Iterator[Exchange]:
    with zmq.Context.instance().socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.RCVTIMEO, WAIT_SECONDS * 1000)
        socket.connect(endpoint)

        def exchange(frame: bytes) -> bytes:
            socket.send(frame)
            answer: bytes = socket.recv()
            return answer

        yield exchange


@contextmanager
def ring_connection(endpoint: str) -> Iterator[Exchange]:
    channel = RingChannel(endpoint)

    def exchange(frame: bytes) -> bytes:
        assert channel.send([frame], WAIT_SECONDS)
        answer = channel.receive(WAIT_SECONDS)
        assert answer is not None
        return answer

    yield exchange
    channel.close()


@contextmanager
def grpc_connection(endpoint: str) -> Iterator[Exchange]:
    """All frames over one stream: an answer that does not come, or an end of the stream, fails the test."""
    with grpc.insecure_channel(endpoint) as channel:
        frames: list[bytes] = []
        there = threading.Semaphore(0)

        def outgoing() -> Iterator[bytes]:
            while there.acquire() and frames:
                yield frames.pop(0)

        answers = channel.stream_stream("/draftd.v1.Drafter/Stream")(outgoing(), timeout=WAIT_SECONDS)

        def exchange(frame: bytes) -> bytes:
            frames.append(frame)
            there.release()
            answer: bytes = next(answers)
            return answer

        yield exchange
        there.release()


@contextmanager
def grpc_unary(endpoint: str) -> Iterator[Exchange]:
    with grpc.insecure_channel(endpoint) as channel:
        step = channel.unary_unary("/draftd.v1.Drafter/Step")
        yield lambda frame: step(frame, timeout=WAIT_SECONDS)


@contextmanager
def connected(transport: str, engine: Engine, directory: Path) -> Iterator[Exchange]:
    """A served engine and one connection to it."""
    served, connection = {
        "ring": (ring_served, ring_connection),
        "zmq": (zmq_served, zmq_connection),
        "grpc": (grpc_served, grpc_connection),
        "grpc unary": (grpc_served, grpc_unary),
    }[transport]
    with served(engine, directory) as endpoint, connection(endpoint) as exchange:
        yield exchange


TRANSPORTS = ["ring", "zmq", "grpc", "grpc unary"]
