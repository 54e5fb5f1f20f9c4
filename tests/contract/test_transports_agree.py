"""The same frames give the same answers, whatever carried them."""

from pathlib import Path

import pytest

from draftd.client import Namespace
from draftd.client.client import ChannelClient
from draftd.client.local import LocalChannel
from draftd.engine import Engine
from draftd.wire import Frame
from tests.contract.serving import TRANSPORTS, connected, small_engine

TEXT = [1, 2, 3, 4, 5, 6, 7, 8]


class RecordingChannel(LocalChannel):
    """In process, keeping what was sent and what came back."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.sent: list[bytes] = []
        self.answered: list[bytes] = []

    def send(self, frames: list[bytes], timeout: float) -> bool:
        self.sent += frames
        return super().send(frames, timeout)

    def receive(self, timeout: float) -> bytes | None:
        frame = super().receive(timeout)
        if frame is not None:
            self.answered.append(frame)
        return frame


@pytest.fixture(scope="module")
def conversation() -> tuple[list[bytes], list[bytes]]:
    """What a client says in a few steps of several requests, and what an engine in the same process answers."""
    channel = RecordingChannel(small_engine())
    client = ChannelClient(channel, Namespace(tenant="acme"), verifier="contract", deadline=30, vocabulary_size=100)
    first = client.open("first", TEXT * 3, wait=True, shape="tree")
    second = client.open("second", [*TEXT, 3, 4], shape="chain", max_nodes=5, stop_ids=[50])
    third = client.open("third", [9, 100, 9])  # refused: an id outside the vocabulary
    client.step({first: [1], second: [5], third: [9]}, budget=12)
    client.step({first: [2, 3], second: [6]}, verified={first: 1, second: [True, False]})
    client.commit({first: [4]})
    client.step({first: [-1], second: [50]}, min_survival=0.2)
    first.close()
    client.open("after", [3, 4], wait=True).draft(8)
    return channel.sent, channel.answered


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport_answers_the_same_frames_as_the_engine_in_process(
    transport: str, conversation: tuple[list[bytes], list[bytes]], tmp_path: Path
) -> None:
    sent, expected = conversation
    with connected(transport, small_engine(), tmp_path) as exchange:
        answers = [exchange(frame) for frame in sent]
    assert len(answers) == len(expected)
    for answer, in_process in zip(answers, expected, strict=True):
        assert without_drafter(answer) == without_drafter(in_process)


def test_the_conversation_is_worth_comparing(conversation: tuple[list[bytes], list[bytes]]) -> None:
    replies = [Frame.FromString(answer).reply for answer in conversation[1]]
    assert sum(len(reply.tail.tokens) // 4 for reply in replies) > 20
    assert sum(len(reply.errors) for reply in replies) >= 2


def without_drafter(answer: bytes) -> Frame:
    """Everything but who answered, and how fast."""
    frame = Frame.FromString(answer)
    if frame.HasField("hello_reply"):
        frame.hello_reply.ClearField("incarnation")
    frame.reply.ClearField("drafter")
    frame.reply.ClearField("core_micros")
    return frame
