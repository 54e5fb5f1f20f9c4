"""The hot path: a ROUTER socket on a thread of its own, one ZMQ message per frame.

A verifier that is alone is answered by that thread itself, for a hand-over costs as much as a small step. As soon as
there are several, other threads answer them, one frame of each at a time, and in turn: who sends more than its share
waits behind itself, and its drafts alone are shed.
"""

import math
import os
import select
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import zmq

from draftd.engine import Answer, Engine
from draftd.transport import unix_socket
from draftd.transport.answering import Answering
from draftd.transport.answers import MOST_DEFERRED, SHED_ABOVE, shutting_down
from draftd.transport.waiting_frames import WaitingFrames

MOST_QUEUED_FRAMES = 1000  # per verifier and direction; beyond, ZMQ makes the verifier wait and drops answers
MOST_READ_AHEAD = 1024  # frames taken out of the socket to see how far behind we are
MOST_BYTES_AHEAD = 4 << 20  # of these frames: whoever sends long ones is not to fill the memory
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

    def __init__(self, engine: Engine, endpoint: str, *, max_frame_bytes: int, threads: int = 1) -> None:
        """At most `threads` verifiers are answered at the same time."""
        self.endpoint = endpoint  # after start: with the real port
        self._path = Path(endpoint.removeprefix("ipc://")) if endpoint.startswith("ipc://") else None
        self._engine = engine
        self._waiting = WaitingFrames()  # read ahead
        self._answering = Answering(engine, threads)
        self._deferred: deque[Deferred] = deque()  # tickets grow, but for threads that overtake each other
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
            self._answering.close()
            raise
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._answering.start()
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
        poller, deaf_poller = zmq.Poller(), zmq.Poller()
        for source in (self._answering.fileno(), self._indexed_fd, self._stop_fd):
            poller.register(source, zmq.POLLIN)
            deaf_poller.register(source, zmq.POLLIN)
        poller.register(self._socket, zmq.POLLIN)
        expire_at = time.monotonic()
        while True:
            # What can't be given to a thread waits until one has answered, which is an event.
            can_read = self._has_room()
            timeout = 0 if self._can_answer() else int(EXPIRE_SECONDS * 1000)
            ready = dict((poller if can_read else deaf_poller).poll(timeout))
            if self._indexed_fd in ready:
                self._send_indexed()
            if self._stop_fd in ready:
                break
            if self._answering.fileno() in ready:
                self._send_answered()
            if self._waiting or self._socket in ready:
                self._read_ahead()
                self._answer_waiting()
            if (now := time.monotonic()) >= expire_at:
                self._waiting.forget_silent(now)
                self._engine.expire()
                expire_at = now + EXPIRE_SECONDS
        self._drain(poller)
        self._answering.close()
        self._socket.close(linger=LINGER_MILLISECONDS)

    def _read_ahead(self) -> None:
        now = time.monotonic()
        while self._has_room() and self._frame_waits():
            peer, frame = self._receive()
            self._waiting.add(peer, frame, now)

    def _has_room(self) -> bool:
        return len(self._waiting) < MOST_READ_AHEAD and self._waiting.bytes < MOST_BYTES_AHEAD

    def _can_answer(self) -> bool:
        return self._waiting.can_take() and self._answering.is_free()

    def _answer_waiting(self) -> None:
        """Answer frames, as many as one turn may, or have them answered."""
        for _ in range(FRAMES_PER_TURN):
            if not self._can_answer():
                return
            peer, frame, behind = self._waiting.take()
            shed = behind > SHED_ABOVE
            if self._waiting.from_one_peer():
                self._answered(peer, self._engine.handle(frame, shed=shed))
            else:
                self._answering.give(peer, frame, shed=shed)

    def _send_answered(self) -> None:
        for answered in self._answering.fetch():
            self._answered(answered.peer, answered.answer)

    def _answered(self, peer: bytes, answer: Answer) -> None:
        self._waiting.answered(peer)
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
        poller.unregister(self._answering.fileno())
        until = time.monotonic() + self._drain_seconds
        self._read_ahead()
        while (self._waiting or self._answering.in_hand) and time.monotonic() < until:
            self._answer_waiting()
            if self._answering.in_hand:
                select.select([self._answering], [], [], max(0.0, until - time.monotonic()))
                self._send_answered()
        self._answering.stop()
        self._send_answered()
        while self._deferred and time.monotonic() < until:
            self._refuse_waiting(poller, until)
        until = time.monotonic() + FAREWELL_SECONDS
        while self._waiting.can_take():
            peer, frame, _ = self._waiting.take()
            self._send(peer, shutting_down(frame))
            self._waiting.answered(peer)
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
