"""Frames over ZMQ: a DEALER socket, one ZMQ message per frame."""

import math
import time
from functools import cached_property

import zmq
import zmq.asyncio

RECONNECT_MILLISECONDS = 20
MOST_QUEUED_FRAMES = 1000  # each way


def _configure(socket: "zmq.Socket[bytes]") -> None:
    socket.setsockopt(zmq.IMMEDIATE, 1)  # queue for live connections only: a dead drafter shows at once
    socket.setsockopt(zmq.LINGER, 100)  # milliseconds: the last closes get out, a dead drafter holds nobody up
    socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MILLISECONDS)
    socket.setsockopt(zmq.SNDHWM, MOST_QUEUED_FRAMES)
    socket.setsockopt(zmq.RCVHWM, MOST_QUEUED_FRAMES)


def _connect(socket: "zmq.Socket[bytes]", endpoint: str) -> None:
    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        socket.close(linger=0)
        raise ValueError(f"endpoint {endpoint!r} cannot be used: {error}") from None


class ZmqChannel:
    """Blocking form. Waiting releases the GIL."""

    def __init__(self, endpoint: str) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        _configure(self._socket)
        self._milliseconds = -1  # current receive timeout of the socket
        _connect(self._socket, endpoint)

    def send(self, frames: list[bytes], timeout: float) -> bool:
        until = time.monotonic() + timeout  # of all together
        return all(self._send(frame, until) for frame in frames)

    def _send(self, frame: bytes, until: float) -> bool:
        while True:
            try:
                self._socket.send(frame, zmq.DONTWAIT)
            except zmq.Again:
                if not self._socket.poll(_milliseconds(until - time.monotonic()), zmq.POLLOUT):
                    return False
            else:
                return True

    def receive(self, timeout: float) -> bytes | None:
        milliseconds = _milliseconds(timeout)
        if milliseconds != self._milliseconds:
            self._socket.setsockopt(zmq.RCVTIMEO, milliseconds)
            self._milliseconds = milliseconds
        try:
            frame: bytes = self._socket.recv()
        except zmq.Again:
            return None
        return frame

    def close(self) -> None:
        self._socket.close()


def _milliseconds(seconds: float) -> int:
    """What ZMQ counts in; rounded up, so that a short wait stays one."""
    return max(0, math.ceil(seconds * 1000))


class AsyncZmqChannel:
    """The same on an event loop: the one that first sends."""

    def __init__(self, endpoint: str) -> None:
        # Connected without a loop, so that an unusable endpoint shows where the client is made.
        self._plain: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        _configure(self._plain)
        _connect(self._plain, endpoint)

    @cached_property
    def _socket(self) -> zmq.asyncio.Socket:
        return zmq.asyncio.Socket.from_socket(self._plain)

    async def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            await self._socket.send(frame)

    async def receive(self) -> bytes:
        frame: bytes = await self._socket.recv()
        return frame

    async def close(self) -> None:
        if "_socket" in self.__dict__:
            self._socket.close()
        self._plain.close()
