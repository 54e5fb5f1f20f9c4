"""A channel carries frames to a drafter and back; how, is the endpoint's business."""

from typing import Protocol


class ChannelError(Exception):
    """The connection is gone and with it every frame under way. The next send tries a new one."""


LONGEST_DEADLINE = 86_400.0  # seconds; sockets count milliseconds in 32 bits


def checked_deadline(seconds: float) -> float:
    """Raises ValueError for what no call can wait."""
    if not 0 < seconds <= LONGEST_DEADLINE:
        raise ValueError(f"deadline is {seconds}; give seconds above 0, and at most {LONGEST_DEADLINE:.0f}")
    return seconds


class Channel(Protocol):
    """Used by one thread at a time. Timeouts are in seconds; 0 never waits."""

    def send(self, frames: list[bytes], timeout: float, /) -> bool:
        """Send all, in order. False: there was no connection, or no room, within the timeout."""
        ...

    def receive(self, timeout: float, /) -> bytes | None:
        """The next frame. None: none came within the timeout. Raises ChannelError."""
        ...

    def close(self) -> None: ...


class AsyncChannel(Protocol):
    """The same for an event loop. Deadlines are the caller's: it cancels what takes too long."""

    async def send(self, frames: list[bytes]) -> None:
        """Send all, in order, as soon as there is a connection and room."""
        ...

    async def receive(self) -> bytes:
        """The next frame. Raises ChannelError."""
        ...

    async def close(self) -> None: ...


ENDPOINT_FORMS = "ipc://PATH, tcp://HOST:PORT, grpc://HOST:PORT, grpc+unix:PATH or unix:PATH"


def grpc_target(endpoint: str) -> str | None:
    """The gRPC target of an endpoint, None if it is a ZMQ one. Raises ValueError for anything else."""
    if endpoint.startswith(("ipc://", "tcp://")):
        return None
    for prefix, scheme in (("grpc://", ""), ("grpc+unix:", "unix:"), ("unix:", "unix:")):
        if endpoint.startswith(prefix) and len(endpoint) > len(prefix):
            return scheme + endpoint.removeprefix(prefix)
    raise ValueError(f"endpoint {endpoint!r} is none that a client can use; give {ENDPOINT_FORMS}")
