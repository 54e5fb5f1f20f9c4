"""Frames to a drafter on the same host: through shared memory where it offers that, else over ZMQ."""

import contextlib
import os
import select
import socket
import time

from draftd import native
from draftd.client.channel import ChannelError
from draftd.client.zmq_channel import ZmqChannel
from draftd.observe.cpus import cpu_count
from draftd.wire.ring import GREETING, ring_path

LONGEST_ANSWER = 1 << 30  # bytes; memory is taken as they come
GREETING_SECONDS = 1.0  # a drafter that takes the connection greets within; if not, ZMQ is tried
MOST_UNSENT = 1 << 20  # bytes that wait for a drafter that does not read, besides those of one message
SECONDS_PER_BYTE = 5e-9  # a drafter that reads takes less: what is left of a long message goes before the next
LINGER_SECONDS = 0.1  # at the close, for what was sent before it


class RingChannel:
    """Blocking form, for ipc://PATH. Waiting releases the GIL.

    The ring is tried first, and again whenever neither way works; as long as ZMQ does, it is not looked for. So
    whatever keeps either end from sharing memory costs nothing but time: the two ways carry the same frames.
    """

    def __init__(self, endpoint: str) -> None:
        self._zmq = ZmqChannel(endpoint)
        self._path = str(ring_path(endpoint))
        self._spins = cpu_count() > 1
        self._knocked: socket.socket | None = None  # connected, and not greeted yet
        self._greeted_until = 0.0  # so long a greeting is waited for
        self._ring: native.Ring | None = None
        self._zmq_serves = False
        self._knock()

    def send(self, frames: list[bytes], timeout: float) -> bool:
        until = time.monotonic() + timeout
        if self._ring is None and not self._zmq_serves:
            self._connect(until)
        if self._ring is not None:
            return self._send_through(self._ring, frames, until)
        if self._knocked is not None:
            return False  # there is time for a greeting left, and none to wait for it
        self._zmq_serves = self._zmq.send(frames, until - time.monotonic())
        return self._zmq_serves

    def receive(self, timeout: float) -> bytes | None:
        if self._ring is None:
            return self._zmq.receive(timeout)
        try:
            return self._ring.receive(timeout)
        except native.RingBroken as broken:
            self._leave()
            raise ChannelError(f"shared memory: {broken}") from None

    def close(self) -> None:
        if self._ring is not None:
            with contextlib.suppress(native.RingBroken):  # nobody is there to read the rest
                self._ring.flush(LINGER_SECONDS)
            self._leave()
        self._give_up()
        self._zmq.close()

    def _send_through(self, ring: native.Ring, frames: list[bytes], until: float) -> bool:
        try:
            if ring.unsent >= MOST_UNSENT:
                ring.flush(max(until - time.monotonic(), ring.unsent * SECONDS_PER_BYTE))
            return ring.unsent < MOST_UNSENT and all(map(ring.send, frames))
        except native.RingBroken:
            self._leave()
            return False

    def _leave(self) -> None:
        if self._ring is not None:
            self._ring.close()
            self._ring = None

    def _connect(self, until: float) -> None:
        """Come to a ring, if there is one; a drafter that takes its time may still greet at a later call."""
        if self._knocked is None:
            self._knock()
        if self._knocked is None:
            return
        if not _readable(self._knocked, min(until, self._greeted_until) - time.monotonic()):
            if time.monotonic() >= self._greeted_until:
                self._give_up()
            return
        try:
            greeting, memory, _, _ = socket.recv_fds(self._knocked, len(GREETING), 1)
            try:
                if greeting == GREETING and memory:
                    self._ring = native.Ring(
                        memory[0],
                        self._knocked.fileno(),
                        server=False,
                        longest_frame=LONGEST_ANSWER,
                        spins=self._spins,
                    )
                    self._knocked.detach()  # the ring's from now on
            finally:
                for file in memory:
                    os.close(file)
        except OSError:
            pass  # it went, or memory can't be shared here
        self._give_up()

    def _knock(self) -> None:
        knocked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        knocked.setblocking(False)
        try:
            knocked.connect(self._path)
        except OSError:  # also where the path is too long for a socket, or the drafter has more to do than to accept
            knocked.close()
        else:
            self._knocked = knocked
            self._greeted_until = time.monotonic() + GREETING_SECONDS

    def _give_up(self) -> None:
        if self._knocked is not None:
            self._knocked.close()
            self._knocked = None


def _readable(connection: socket.socket, seconds: float) -> bool:
    poller = select.poll()  # unlike select, takes descriptors of any number
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(max(0.0, seconds) * 1000))
