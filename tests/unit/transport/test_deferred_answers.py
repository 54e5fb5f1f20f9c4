"""Answers that wait for indexing are held back, but not without a bound."""

import itertools
import queue
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
import zmq

from draftd.config import EngineSettings
from draftd.engine import Answer, Engine
from draftd.transport import grpc_server, zmq_server
from draftd.wire import Frame
from tests.contract.frames import hello_frame, sync_frame
from tests.contract.serving import WAIT_SECONDS, grpc_served, zmq_served

VERIFIER = 7
MOST = 3


class NeverIndexed(Engine):
    """Never done with the text before an answer that waits."""

    def handle(self, frame: bytes, *, shed: bool = False) -> Answer:
        return Answer(super().handle(frame, shed=shed).reply, ticket=int(Frame.FromString(frame).step.wait))

    def indexed(self, _ticket: int) -> bool:
        return False


def waiting_frame(step: int) -> bytes:
    frame = Frame.FromString(sync_frame(VERIFIER, step=step, prompt=[1, 2, 3], request=step))
    frame.step.wait = True
    return frame.SerializeToString()


def answers_over_zmq(endpoint: str, frames: Sequence[bytes], count: int) -> list[bytes]:
    with zmq.Context.instance().socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.RCVTIMEO, WAIT_SECONDS * 1000)
        socket.connect(endpoint)
        for frame in frames:
            socket.send(frame)
        return [socket.recv() for _ in range(count)]


def answers_over_grpc(endpoint: str, frames: Sequence[bytes], count: int) -> list[bytes]:
    outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    for frame in frames:
        outgoing.put(frame)
    with grpc.insecure_channel(endpoint) as channel:
        answers = channel.stream_stream("/draftd.v1.Drafter/Stream")(iter(outgoing.get, b""), timeout=WAIT_SECONDS)
        received = list(itertools.islice(answers, count))
        outgoing.put(b"")
        answers.cancel()
        return received


@pytest.mark.parametrize("transport", ["zmq", "grpc"])
def test_an_answer_goes_out_at_once_when_too_many_wait_for_indexing(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, answers = {"zmq": (zmq_served, answers_over_zmq), "grpc": (grpc_served, answers_over_grpc)}[transport]
    monkeypatch.setattr(zmq_server, "MOST_DEFERRED", MOST)
    monkeypatch.setattr(grpc_server, "MOST_DEFERRED", MOST)
    frames = [hello_frame(VERIFIER), *map(waiting_frame, range(1, MOST + 2))]
    with served(NeverIndexed(EngineSettings()), tmp_path) as endpoint:
        _, answer = answers(endpoint, frames, 2)
    assert Frame.FromString(answer).reply.step == MOST + 1
