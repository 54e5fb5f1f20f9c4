"""A process that answers ZMQ messages as fast as Python can: what a round trip costs before anything is done in it.

    python -m bench.echo ENDPOINT

A message starts with the size of the answer, as a little-endian u32.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import zmq


@contextmanager
def running_echo(endpoint: str) -> Iterator[None]:
    """An echo process at a ZMQ endpoint for as long as the context lasts."""
    command = [sys.executable, "-m", "bench.echo", endpoint]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.terminate()


def message(size: int, answer_size: int) -> bytes:
    return answer_size.to_bytes(4, "little") + bytes(max(0, size - 4))


def serve(endpoint: str) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        socket.bind(endpoint)
        print("ready", flush=True)
        while True:
            sender, received = socket.recv_multipart()
            socket.send_multipart([sender, bytes(int.from_bytes(received[:4], "little"))])


if __name__ == "__main__":
    serve(sys.argv[1])
