"""Several verifiers at one server: none waits for another."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import zmq

from draftd.config import EngineSettings
from draftd.engine import Answer, Engine
from draftd.transport.zmq_server import ZmqServer
from draftd.wire import Frame
from tests.contract.frames import commit_frame, hello_frame, sync_frame

WAIT_SECONDS = 30  # for what does come
PROMPT = [1, 2, 3, 1, 2]


class MeetingEngine(Engine):
    """Steps with this number are answered only while as many others are being answered."""

    MEETING_STEP = 7

    def __init__(self, parties: int) -> None:
        super().__init__(EngineSettings())
        self._meeting = threading.Barrier(parties, timeout=WAIT_SECONDS)

    def handle(self, frame: bytes, *, shed: bool = False) -> Answer:
        if Frame.FromString(frame).step.step == self.MEETING_STEP:
            self._meeting.wait()
        return super().handle(frame, shed=shed)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = MeetingEngine(parties=2)
    yield engine
    engine.close()


@pytest.fixture
def endpoint(engine: Engine, tmp_path: Path) -> Iterator[str]:
    server = ZmqServer(engine, f"ipc://{tmp_path}/zmq.sock", max_frame_bytes=1 << 20, threads=2)
    server.start()
    yield server.endpoint
    server.stop(drain=WAIT_SECONDS)


class HandMade:
    """A verifier with one request, which sends without waiting for answers."""

    def __init__(self, endpoint: str, verifier: int) -> None:
        self.verifier = verifier
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.RCVTIMEO, WAIT_SECONDS * 1000)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(endpoint)
        self._socket.send(hello_frame(verifier))
        self._socket.send(sync_frame(verifier, 1, PROMPT, request=verifier))
        self.receive()
        assert not self.receive().reply.errors

    def __enter__(self) -> "HandMade":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send_step(self, step: int) -> None:
        row = commit_frame(self.verifier, step, len(PROMPT), [], max_nodes=1, request=self.verifier)
        self._socket.send(row)

    def receive(self) -> Frame:
        return Frame.FromString(self._socket.recv())


def two(endpoint: str) -> tuple[AbstractContextManager[object], HandMade, HandMade]:
    with ExitStack() as stack:
        first = stack.enter_context(HandMade(endpoint, 1))
        second = stack.enter_context(HandMade(endpoint, 2))
        return stack.pop_all(), first, second


def test_steps_of_two_verifiers_are_answered_at_the_same_time(endpoint: str) -> None:
    open_sockets, first, second = two(endpoint)
    with open_sockets:
        first.send_step(MeetingEngine.MEETING_STEP)
        second.send_step(MeetingEngine.MEETING_STEP)
        for verifier in (first, second):
            assert verifier.receive().reply.step == MeetingEngine.MEETING_STEP


def test_steps_of_one_verifier_are_answered_in_their_order(endpoint: str) -> None:
    open_sockets, first, second = two(endpoint)
    with open_sockets:
        steps = range(100, 200)
        for step in steps:
            first.send_step(step)
            second.send_step(step)
        for verifier in (first, second):
            assert [verifier.receive().reply.step for _ in steps] == list(steps)
