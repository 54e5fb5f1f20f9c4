"""Frames over gRPC: one bidirectional stream of Drafter.Stream, the same bytes as over ZMQ."""

import asyncio
import queue
import threading

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
    """The same on an event loop; to be made on the loop that uses it."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.aio.insecure_channel(target, OPTIONS)
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] | None = None
        self._connected = asyncio.Event()
        self._writing = asyncio.Lock()  # gRPC takes one write at a time

    async def send(self, frames: list[bytes]) -> None:
        async with self._writing:
            if self._call is None:
                self._call = self._channel.stream_stream(STREAM)()
                self._connected.set()
            try:
                for frame in frames:
                    await self._call.write(frame)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                raise ChannelError("the gRPC stream ended") from None

    async def receive(self) -> bytes:
        await self._connected.wait()
        assert self._call is not None
        try:
            frame = await self._call.read()
        except grpc.aio.AioRpcError:
            frame = grpc.aio.EOF
        if isinstance(frame, bytes):
            return frame
        self._connected.clear()
        self._call = None
        raise ChannelError("the gRPC stream ended")

    async def close(self) -> None:
        if self._call is not None:
            await self._call.done_writing()
        await self._channel.close(LINGER_SECONDS)
