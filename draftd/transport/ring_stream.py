"""One verifier's frames through shared memory, from the first to the last."""

import contextlib
import math
import os
import time
from collections import deque
from dataclasses import dataclass

from draftd import native
from draftd.engine import Engine
from draftd.observe import facts
from draftd.transport.answers import MOST_DEFERRED, SHED_ABOVE, shutting_down

MOST_BYTES_AHEAD = 4 << 20  # read before anything is answered, and one frame more
MOST_AT_END = 1024  # frames that are still answered when the server stops
FAREWELL_SECONDS = 0.2  # for a peer that reads slowly, at the end


@dataclass(slots=True)
class Ending:
    """The server's, which all its streams look at."""

    fd: int  # an eventfd: readable from the end on
    has_begun: bool = False
    drain_seconds: float = 0.0

    def begin(self, drain_seconds: float) -> None:
        self.drain_seconds = drain_seconds
        self.has_begun = True
        os.eventfd_write(self.fd, 1)


class RingStream:
    """Answers in order, but for answers that wait for indexing. A peer that reads nothing is read no more."""

    def __init__(self, engine: Engine, ring: native.Ring, ending: Ending, indexed_fd: int) -> None:
        self.indexed_fd = indexed_fd  # readable after indexing made progress
        self._engine = engine
        self._ring = ring
        self._ending = ending
        self._waiting: deque[bytes] = deque()  # frames read ahead, to see how far behind we are
        self._bytes_ahead = 0  # in those
        self._deferred: deque[tuple[int, bytes]] = deque()  # tickets, which grow, and the replies that wait for them

    def run(self) -> None:
        """Until the peer is gone or breaks the ring, or the server stops."""
        try:
            while not self._ending.has_begun:
                self._turn()
            self._drain(time.monotonic() + self._ending.drain_seconds)
        except native.RingBroken as broken:
            facts.ring_ended(str(broken))
        finally:
            self._ring.close()

    def _turn(self) -> None:
        """Read a frame, or answer the one that waits longest."""
        if self._bytes_ahead <= MOST_BYTES_AHEAD:
            others = (self._ending.fd, self.indexed_fd) if self._deferred else (self._ending.fd,)
            frame = self._ring.receive(0 if self._waiting else math.inf, others)
            if frame is not None:
                self._put_by(frame)
                if len(self._waiting) <= SHED_ABOVE + 1:
                    return  # perhaps there are more
        if self._deferred:
            self._send_indexed()
        if self._waiting:
            self._answer_next()

    def _put_by(self, frame: bytes) -> None:
        self._waiting.append(frame)
        self._bytes_ahead += len(frame)

    def _answer_next(self) -> None:
        frame = self._waiting.popleft()
        self._bytes_ahead -= len(frame)
        answer = self._engine.handle(frame, shed=len(self._waiting) > SHED_ABOVE)
        if answer.ticket == 0 or len(self._deferred) >= MOST_DEFERRED or self._engine.indexed(answer.ticket):
            self._send(answer.reply)
        else:
            self._deferred.append((answer.ticket, answer.reply))

    def _send(self, reply: bytes) -> None:
        with contextlib.suppress(native.RingBroken):  # what a peer said before it went counts: that is still read
            self._ring.send(reply)
            if self._ring.unsent:
                self._ring.flush(math.inf, (self._ending.fd,))

    def _send_indexed(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.indexed_fd)
        while self._deferred and self._engine.indexed(self._deferred[0][0]):
            self._send(self._deferred.popleft()[1])

    def _drain(self, until: float) -> None:
        """Answer what came before the stop, refuse what comes while the last answers wait."""
        while len(self._waiting) < MOST_AT_END and self._bytes_ahead <= MOST_BYTES_AHEAD:
            if (frame := self._ring.receive(0)) is None:
                break
            self._put_by(frame)
        while self._waiting and time.monotonic() < until:
            self._answer_next()
        while self._deferred and (left := until - time.monotonic()) > 0:
            if (frame := self._ring.receive(left, (self.indexed_fd,))) is not None:
                self._send(shutting_down(frame))
            self._send_indexed()
        for frame in self._waiting:
            self._send(shutting_down(frame))
        self._ring.flush(FAREWELL_SECONDS)
