"""Shared memory where the host has no more threads, and where a peer would have no end of memory."""

import os
import socket
import threading
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from draftd import native
from draftd.client import Client, ring_channel
from draftd.config import EngineSettings
from draftd.engine import Answer, Engine
from draftd.transport import ring_server, ring_stream
from draftd.transport.ring_server import RingServer
from draftd.transport.ring_stream import Ending, RingStream
from draftd.wire.ring import ring_path
from tests.contract.serving import zmq_served
from tests.faults.process import until
from tests.faults.test_ring import rings_of

PATIENT = 30.0
MEBIBYTE = 1 << 20
LENGTH = 4  # bytes before each frame


def ends(memory: int) -> tuple[native.Ring, native.Ring]:
    """Of one ring: the server's, the client's."""
    server, client = (
        native.Ring(memory, end.detach(), server=is_server, longest_frame=1 << 24, spins=False)
        for end, is_server in zip(socket.socketpair(), (True, False), strict=True)
    )
    return server, client


def test_a_thread_that_can_not_be_started_costs_that_connection_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring_server, "BREATHER_SECONDS", 0.0)
    start = threading.Thread.start

    def failing(thread: threading.Thread) -> None:
        if thread.name == "draftd-ring-stream":
            raise RuntimeError("can't start new thread")
        start(thread)

    engine = Engine(EngineSettings())
    before = rings_of(os.getpid())
    with zmq_served(engine, tmp_path) as endpoint:
        rings = RingServer(engine, ring_path(endpoint), max_frame_bytes=1 << 20)
        rings.start()
        with monkeypatch.context() as scarce:
            scarce.setattr(threading.Thread, "start", failing)
            with Client(endpoint, deadline=PATIENT) as client:
                assert client.check(PATIENT).state == "serving"
                assert rings_of(os.getpid()) == before
        with Client(endpoint, deadline=PATIENT) as client:
            assert client.check(PATIENT).state == "serving"
            assert rings_of(os.getpid()) == before + 2  # both ends
        rings.stop(0)


def test_a_drafter_that_takes_the_connection_and_never_greets_is_spoken_to_over_zmq(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        zmq_served(Engine(EngineSettings()), tmp_path) as endpoint,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hung,
    ):
        hung.bind(str(ring_path(endpoint)))
        hung.listen()
        monkeypatch.setattr(ring_channel, "GREETING_SECONDS", 0.1)
        with Client(endpoint, deadline=PATIENT) as client:
            assert client.check(PATIENT).state == "serving"
        with Client(endpoint, deadline=PATIENT) as client:
            until(lambda: client.check(0.03).state == "serving")  # in several waits, too
        monkeypatch.setattr(ring_channel, "GREETING_SECONDS", float("inf"))
        with Client(endpoint, deadline=PATIENT) as client:
            assert client.check(0.03).state != "serving"  # no step waits beyond its deadline


def test_a_steady_backlog_takes_no_more_memory_with_time() -> None:
    memory = native.create_ring_memory()
    server, client = ends(memory)
    os.close(memory)
    with closing(server), closing(client):
        frame = bytes(MEBIBYTE // 4)
        for _ in range(12):
            client.send(frame)
        before = psutil.Process().memory_info().rss
        for _ in range(1000):
            while server.receive(0) is None:
                client.flush(0)
            client.send(frame)
        assert client.unsent > MEBIBYTE
        assert psutil.Process().memory_info().rss - before < 50 * MEBIBYTE  # all together are 250


def test_what_is_read_before_it_is_answered_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the long frames come: at once, or behind many short ones."""
    most, long = 300_000, 100_000
    monkeypatch.setattr(ring_stream, "MOST_BYTES_AHEAD", most)
    frames = [bytes(10)] * 100 + [bytes(long)] * 9
    memory = native.create_ring_memory()
    server, client = ends(memory)
    for frame in frames:
        client.send(frame)
    assert client.unsent == 0
    client.close()
    ahead: list[int] = []
    answered = 0

    class Watched(Engine):
        def handle(self, frame: bytes, *, shed: bool = False) -> Answer:
            nonlocal answered
            answered += LENGTH + len(frame)
            taken = int.from_bytes(os.pread(memory, 8, 8), "little")  # bytes, as the server's state says
            ahead.append(taken - answered)
            return super().handle(frame, shed=shed)

    with closing(Watched(EngineSettings())) as engine:
        RingStream(engine, server, Ending(os.eventfd(0)), engine.indexed_fileno()).run()
    os.close(memory)
    assert len(ahead) == len(frames)
    assert most < max(ahead) <= most + long + LENGTH * len(frames)
