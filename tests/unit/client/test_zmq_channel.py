"""The channel's own promise: all frames of a send share one timeout."""

import pytest
import zmq

from draftd.client import zmq_channel
from draftd.client.zmq_channel import ZmqChannel


class Congested:
    """A socket with room for the next frame only after it was waited for."""

    def __init__(self) -> None:
        self.now = 100.0  # seconds
        self.sent = 0
        self._room = False

    def monotonic(self) -> float:
        return self.now

    def send(self, _frame: bytes, _flags: int) -> None:
        if not self._room:
            raise zmq.Again
        self._room = False
        self.sent += 1

    def poll(self, milliseconds: int, _events: int) -> int:
        """There is room after 40 ms."""
        self._room = milliseconds >= 40
        self.now += min(milliseconds, 40) / 1000
        return zmq.POLLOUT if self._room else 0


def test_the_frames_of_a_send_share_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    congested = Congested()
    channel = ZmqChannel("ipc:///tmp/draftd-test-nobody.sock")
    channel.close()
    monkeypatch.setattr(channel, "_socket", congested)
    monkeypatch.setattr(zmq_channel, "time", congested)
    assert not channel.send([b"hello", b"last words", b"step"], timeout=0.1)
    assert congested.sent == 2
    assert congested.now == pytest.approx(100.1, abs=0.002), "milliseconds are rounded up"
    assert channel.send([b"step"], timeout=0.1)
