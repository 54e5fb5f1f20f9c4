"""The hot path: a ROUTER socket on a thread of its own, one ZMQ message per frame."""

import math
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import zmq

from draftd.engine import Engine
from draftd.transport import unix_socket
from draftd.transport.answers import MOST_DEFERRED, SHED_ABOVE, shutting_down

MOST_QUEUED_FRAMES = 1000  # per verifier and direction; beyond, ZMQ makes the verifier wait and drops answers
MOST_READ_AHEAD = 1024  # frames taken out of the socket to see how far behind we are
FRAMES_PER_TURN = 16  # answered before deferred answers, expiry and the stop get their turn
EXPIRE_SECONDS = 1.0
LINGER_MILLISECONDS = 1000
FAREWELL_SECONDS = 0.2  # a peer's ZMQ drops what it has not read when the connection ends: give it time to read

# As plain numbers: pyzmq's enums cost more than the calls they are for.
_EVENTS, _POLLIN, _MORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.RCVMORE)


@dataclass(frozen=True, slots=True)
class Deferred:
    """An answer that waits for the indexing of what came before it."""

    ticket: int
    peer: bytes
    reply: bytes


class ZmqServer:
    """Serves `engine` at ipc://PATH or tcp://HOST:PORT (port 0: a free one)."""

    def __init__(self, engine: Engine, endpoint: str, *, max_frame_bytes: int) -> None:
        self.endpoint = endpoint  # after start: with the real port
        self._path = Path(endpoint.removeprefix("ipc://")) if endpoint.startswith("ipc://") else None
        self._engine = engine
        self._waiting: deque[tuple[bytes, bytes]] = deque()  # frames read ahead, each with its sender
        self._deferred: deque[Deferred] = deque()  # tickets grow
        self._indexed_fd = engine.indexed_fileno()
        self._stop_fd = os.eventfd(0)
        self._drain_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="draftd-zmq")
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.SNDHWM, MOST_QUEUED_FRAMES)
        self._socket.setsockopt(zmq.RCVHWM, MOST_QUEUED_FRAMES)
        # The engine answers a frame above the limit with an error; far above, ZMQ drops the connection.
        self._socket.setsockopt(zmq.MAXMSGSIZE, 2 * max_frame_bytes)

    def start(self) -> None:
        """Binds, then serves until `stop`. Raises OSError, for example when the address is in use."""
        try:
            self._bind()
        except OSError:
            self._socket.close()
            raise
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._thread.start()

    def _bind(self) -> None:
        if self._path is not None:
            unix_socket.claim(self._path)
        try:
            self._socket.bind(self.endpoint)
        except zmq.ZMQError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), self.endpoint) from None
        if self._path is not None:
            self._path.chmod(unix_socket.SOCKET_MODE)

    def stop(self, drain: float) -> None:
        """Answers what has come and what waits for indexing, for up to `drain` seconds, and closes.

        Returns FAREWELL_SECONDS later at the latest, whatever peers send meanwhile.
        """
        self._drain_seconds = drain
        os.eventfd_write(self._stop_fd, 1)
        self._thread.join()
        os.close(self._stop_fd)

    def _run(self) -> None:
        poller = zmq.Poller()
        for source in (self._socket, self._indexed_fd, self._stop_fd):
            poller.register(source, zmq.POLLIN)
        expire_at = time.monotonic()
        while True:
            ready = dict(poller.poll(0 if self._waiting else int(EXPIRE_SECONDS * 1000)))
            if self._indexed_fd in ready:
                self._send_indexed()
            if self._stop_fd in ready:
                break
            if self._waiting or self._socket in ready:
                self._read_ahead()
                self._answer_waiting()
            if (now := time.monotonic()) >= expire_at:
                self._engine.expire()
                expire_at = now + EXPIRE_SECONDS
        self._drain(poller)
        self._socket.close(linger=LINGER_MILLISECONDS)

    def _read_ahead(self) -> None:
        while len(self._waiting) < MOST_READ_AHEAD and self._frame_waits():
            self._waiting.append(self._receive())

    def _answer_waiting(self) -> None:
        """Answer the frames that wait longest, as many as one turn may."""
        for _ in range(min(len(self._waiting), FRAMES_PER_TURN)):
            peer, frame = self._waiting.popleft()
            answer = self._engine.handle(frame, shed=len(self._waiting) > SHED_ABOVE)
            if answer.ticket == 0 or len(self._deferred) >= MOST_DEFERRED or self._engine.indexed(answer.ticket):
                self._send(peer, answer.reply)
            else:
                self._deferred.append(Deferred(answer.ticket, peer, answer.reply))

    def _frame_waits(self) -> bool:
        events = self._socket.getsockopt(_EVENTS)
        return isinstance(events, int) and events & _POLLIN != 0

    def _receive(self) -> tuple[bytes, bytes]:
        """The sender, and its frame; a message of several parts is none, and b"" says so to the engine."""
        peer, frame = self._socket.recv(), self._socket.recv()
        while self._socket.getsockopt(_MORE):
            self._socket.recv()
            frame = b""
        return peer, frame

    def _send(self, peer: bytes, reply: bytes) -> None:
        # Never blocks: a ROUTER drops what is for a peer that is gone or does not read.
        self._socket.send(peer, zmq.SNDMORE)
        self._socket.send(reply)

    def _send_indexed(self) -> None:
        os.eventfd_read(self._indexed_fd)
        while self._deferred and self._engine.indexed(self._deferred[0].ticket):
            deferred = self._deferred.popleft()
            self._send(deferred.peer, deferred.reply)

    def _drain(self, poller: zmq.Poller) -> None:
        """Let nobody new in, answer what came before the stop, refuse what comes while the last answers wait."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        poller.unregister(self._stop_fd)
        until = time.monotonic() + self._drain_seconds
        self._read_ahead()
        while self._waiting and time.monotonic() < until:
            self._answer_waiting()
        while self._deferred and time.monotonic() < until:
            self._refuse_waiting(poller, until)
        until = time.monotonic() + FAREWELL_SECONDS
        for peer, frame in self._waiting:
            self._send(peer, shutting_down(frame))
        while time.monotonic() < until:
            self._refuse_waiting(poller, until)

    def _refuse_waiting(self, poller: zmq.Poller, until: float) -> None:
        """Wait for one thing to happen."""
        ready = dict(poller.poll(max(0, math.ceil((until - time.monotonic()) * 1000))))
        if self._socket in ready:
            peer, frame = self._receive()
            self._send(peer, shutting_down(frame))
        if self._indexed_fd in ready:
            self._send_indexed()
