"""Frames over gRPC: one bidirectional stream of Drafter.Stream, the same bytes as over ZMQ."""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from draftd.client.channel import ChannelError

MOST_QUEUED_FRAMES = 1000
LINGER_SECONDS = 0.1  # at the close, for what was sent before it
STREAM = "/draftd.v1.Drafter/Stream"
OPTIONS = (
    ("grpc.max_send_message_length", -1),  # the drafter's own limit counts
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own: no waiting for another client's backoff
)


class _Stream:
    """One life of the stream. gRPC pulls frames out of `outbox`; a thread fills `inbox`; None is the end."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.ended = threading.Event()
        stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
        self._answers = stream(iter(self.outbox.get, None))
        threading.Thread(target=self._read, name="draftd-client-grpc", daemon=True).start()

    def _read(self) -> None:
        try:
            for frame in self._answers:
                self.inbox.put(frame)
        except grpc.RpcError:
            pass  # the end, said below
        self.ended.set()
        self.inbox.put(None)

    def end(self) -> None:
        self.outbox.put(None)
        self._answers.cancel()


class GrpcChannel:
    """Blocking form."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target, OPTIONS)
        self._stream: _Stream | None = None

    def send(self, frames: list[bytes], _timeout: float) -> bool:
        if self._stream is None:
            self._stream = _Stream(self._channel)
        if self._stream.outbox.qsize() > MOST_QUEUED_FRAMES:
            return False
        for frame in frames:
            self._stream.outbox.put(frame)
        return True

    def receive(self, timeout: float) -> bytes | None:
        if self._stream is None:
            return None
        try:
            frame = self._stream.inbox.get(timeout=timeout) if timeout > 0 else self._stream.inbox.get_nowait()
        except queue.Empty:
            return None
        if frame is None:
            self._stream.end()
            self._stream = None
            raise ChannelError("the gRPC stream ended")
        return frame

    def close(self) -> None:
        if self._stream is not None:
            self._stream.outbox.put(None)  # what was sent before still goes out
            self._stream.ended.wait(LINGER_SECONDS)
        self._channel.close()


class AsyncGrpcChannel:
    """The same on an event loop: the one that first sends.

    Callers only touch queues: cancelling one that is late must not cancel the stream.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._channel: grpc.aio.Channel | None = None
        self._outbox: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_QUEUED_FRAMES)
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._stream: asyncio.Task[None] | None = None

    async def send(self, frames: list[bytes]) -> None:
        if self._stream is None or self._stream.done():
            self._outbox = asyncio.Queue(MOST_QUEUED_FRAMES)
            if self._channel is None:
                self._channel = grpc.aio.insecure_channel(self._target, OPTIONS)
            self._stream = asyncio.create_task(self._run(self._channel, self._outbox), name="draftd-client-grpc")
        for frame in frames:
            await self._outbox.put(frame)

    async def receive(self) -> bytes:
        frame = await self._inbox.get()
        if frame is None:
            raise ChannelError("the gRPC stream ended")
        return frame

    async def close(self) -> None:
        if self._stream is not None:
            await self._outbox.put(None)  # what was sent before still goes out
            await asyncio.wait({self._stream}, timeout=LINGER_SECONDS)
            self._stream.cancel()
        if self._channel is not None:
            await self._channel.close()

    async def _run(self, channel: grpc.aio.Channel, outbox: asyncio.Queue[bytes | None]) -> None:
        """One life of the stream."""
        stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
        try:
            async for frame in stream(_frames(outbox)):
                self._inbox.put_nowait(frame)
        except (grpc.aio.AioRpcError, grpc.aio.InternalError):
            pass  # the end, said below
        finally:
            self._inbox.put_nowait(None)


async def _frames(outbox: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (frame := await outbox.get()) is not None:
        yield frame
