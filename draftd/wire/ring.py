"""How two processes come to share memory: what both ends of a ring have to agree on before its first frame.

The drafter listens at a unix socket beside that of ZMQ. Who connects gets GREETING and, with it, the file descriptor of
the memory. The socket stays open: it is the bell of both ends, and its end is the end of the connection.
"""

from pathlib import Path

GREETING = b"draftd ring 1\n"  # another layout of the memory has another number


def ring_path(ipc_endpoint: str) -> Path:
    """The unix socket of the ring beside the ZMQ endpoint ipc://PATH."""
    return Path(ipc_endpoint.removeprefix("ipc://") + ".ring")
