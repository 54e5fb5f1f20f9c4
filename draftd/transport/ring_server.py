"""The hot path on one host: frames through shared memory, a thread for each connection.

What waits for one verifier waits in its own ring or on its own thread, so none holds up another. Whatever can't be had
here is no harm: a client that is let go, or never finds the socket, uses ZMQ.
"""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from draftd import native
from draftd.engine import Engine
from draftd.observe import facts
from draftd.observe.cpus import cpu_count
from draftd.transport import unix_socket
from draftd.transport.ring_stream import Ending, RingStream
from draftd.wire.ring import GREETING

MOST_CONNECTIONS = 64  # each may hold 2 MiB of shared memory; further clients use ZMQ
BREATHER_SECONDS = 1.0  # after a connection could not be taken, for lack of file descriptors or of memory


class RingServer:
    """Serves `engine` to whoever may connect to the unix socket at `path`."""

    def __init__(self, engine: Engine, path: Path, *, max_frame_bytes: int) -> None:
        self._engine = engine
        self._path = path
        self._longest_frame = 2 * max_frame_bytes  # the engine answers one above the limit with an error
        self._spins = cpu_count() > 1
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._ending = Ending(os.eventfd(0))
        self._has_failed = False
        self._indexed_fds: list[int] = []  # not in use; the engine makes them, and closes them at its end
        self._streams: set[threading.Thread] = set()
        self._guard = threading.Lock()  # of the three above
        self._thread = threading.Thread(target=self._accept_all, name="draftd-ring")

    def start(self) -> None:
        """Raises OSError when the socket can't be had, for example because the path is in use."""
        try:
            unix_socket.claim(self._path)
            self._listener.bind(str(self._path))
            self._path.chmod(unix_socket.SOCKET_MODE)
            self._listener.listen(MOST_CONNECTIONS)
            self._listener.setblocking(False)
        except OSError:
            self._listener.close()
            os.close(self._ending.fd)
            raise
        self._thread.start()

    def stop(self, drain: float) -> None:
        """Answers what has come and what waits for indexing, for up to `drain` seconds, and closes."""
        self._path.unlink(missing_ok=True)
        self._ending.begin(drain)
        self._thread.join()
        with self._guard:
            streams = list(self._streams)
        for stream in streams:
            stream.join()
        os.close(self._ending.fd)

    def _accept_all(self) -> None:
        poller, end = select.poll(), select.poll()
        poller.register(self._listener, select.POLLIN)
        for each in (poller, end):
            each.register(self._ending.fd, select.POLLIN)
        while self._ending.fd not in dict(poller.poll()):
            try:
                self._accept()
            except (OSError, RuntimeError, MemoryError) as error:  # no file descriptor, no thread
                self._fail(error)
                end.poll(BREATHER_SECONDS * 1000)
        self._listener.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return  # who knocked is gone
        with contextlib.ExitStack() as letting_go, self._guard:
            letting_go.enter_context(connection)
            if len(self._streams) < MOST_CONNECTIONS:
                stream = threading.Thread(target=self._serve, args=(connection,), name="draftd-ring-stream")
                stream.start()
                self._streams.add(stream)  # before it can take itself out, for that waits for the guard
                letting_go.pop_all()

    def _serve(self, connection: socket.socket) -> None:
        """A connection, on its own thread."""
        try:
            with connection, self._indexed_fd() as indexed_fd:
                ring = self._share_memory(connection)
                RingStream(self._engine, ring, self._ending, indexed_fd).run()
        except ConnectionError:
            pass  # gone before it was greeted
        except OSError as error:
            self._fail(error)
        finally:
            with self._guard:
                self._streams.remove(threading.current_thread())

    def _share_memory(self, connection: socket.socket) -> native.Ring:
        """Greets when all else is there: who is let go without a greeting uses ZMQ."""
        memory = native.create_ring_memory()
        try:
            ring = native.Ring(
                memory, connection.fileno(), server=True, longest_frame=self._longest_frame, spins=self._spins
            )
            try:
                socket.send_fds(connection, [GREETING], [memory], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                ring.close()
                raise
            finally:
                connection.detach()  # it is the ring's
        finally:
            os.close(memory)
        return ring

    @contextlib.contextmanager
    def _indexed_fd(self) -> Iterator[int]:
        with self._guard:
            fd = self._indexed_fds.pop() if self._indexed_fds else self._engine.indexed_fileno()
        try:
            yield fd
        finally:
            with self._guard:
                self._indexed_fds.append(fd)

    def _fail(self, error: Exception) -> None:
        with self._guard:
            if not self._has_failed:  # once is enough: it concerns every client
                facts.ring_failed(error)
            self._has_failed = True
