"""A real server process to be killed, stopped and restarted."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

READY_SECONDS = 60.0  # far more than a start takes; a test that gets there failed


class ServerProcess:
    """`draftd serve` on sockets below one directory. Entering the context starts it, leaving it kills it."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.ring = f"ipc://{directory}/zmq.sock"  # beside which shared memory is offered
        self.zmq = f"ipc://{directory}/zmq.link"  # the same socket by a name that has none beside it
        (directory / "zmq.link").symlink_to(directory / "zmq.sock")
        self.grpc = f"unix:{directory}/grpc.sock"
        self.http = ""  # its base address, once it is ready
        self._directory = directory
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()

    def start(self) -> None:
        """Returns when the server says that it is ready."""
        options = ["--zmq", self.ring, "--grpc", self.grpc, "--http", "127.0.0.1:0", "--data-dir", str(self._directory)]
        with (self._directory / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "draftd", "serve", *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self._environment},
            )
        line = self._first_line()
        assert "ready" in line, f"the server did not start: {line!r}, {self.log()}"
        self.http = line.split(" http ")[1].split()[0]

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(READY_SECONDS), "the server printed nothing"
        return self._process.stdout.readline()

    def log(self) -> str:
        return (self._directory / "server.log").read_text()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """kill -9."""
        self._signal(signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        """It stays connected and answers nothing until `thaw`."""
        self._signal(signal.SIGSTOP)
        assert self._process is not None
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def wait(self) -> int:
        """The exit code, once it has ended."""
        assert self._process is not None
        code = self._process.wait(READY_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Ask again and again until the condition holds; fails after a time that no working part needs."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"still not so after {seconds} s"
