"""A ring is two queues of frames, whatever the sizes and the order in which its ends come to act."""

import os
import socket
from collections import deque

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from draftd import native

LANE = 1 << 20
LENGTH = 4  # bytes before each frame
SIZES = st.one_of(
    st.integers(0, 50),
    st.integers(1000, 20_000),
    st.integers(LANE - LENGTH - 3, LANE + 3),  # what just fills a lane, and what just does not
    st.integers(LANE // 2 - 10, LANE // 2 + 10),
    st.integers(2 * LANE, 3 * LANE),
)


def pair() -> list[native.Ring]:
    memory = native.create_ring_memory()
    ends = [
        native.Ring(memory, end.detach(), server=is_server, longest_frame=1 << 24, spins=False)
        for end, is_server in zip(socket.socketpair(), (True, False), strict=True)
    ]
    os.close(memory)
    return ends


class RingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ends = pair()
        self.under_way: list[deque[bytes]] = [deque(), deque()]  # by sender
        self.sent = 0

    @rule(sender=st.integers(0, 1), size=SIZES)
    def send(self, sender: int, size: int) -> None:
        self.sent += 1
        frame = self.sent.to_bytes(8, "little") * (size // 8 + 1)
        assert self.ends[sender].send(frame[:size])
        self.under_way[sender].append(frame[:size])

    @rule(receiver=st.integers(0, 1))
    def receive(self, receiver: int) -> None:
        expected = self.under_way[1 - receiver]
        frame = self.ends[receiver].receive(0)
        if frame is None:  # still on its way, if anything is
            assert not expected or self.ends[1 - receiver].unsent
        else:
            assert frame == expected.popleft()

    @rule(end=st.integers(0, 1))
    def flush(self, end: int) -> None:
        assert self.ends[end].flush(0) == (self.ends[end].unsent == 0)

    @precondition(lambda self: any(self.under_way))
    @rule()
    def all_arrives(self) -> None:
        for sender, frames in enumerate(self.under_way):
            while frames:
                self.ends[sender].flush(0)
                frame = self.ends[1 - sender].receive(0)
                assert frame is None or frame == frames.popleft()

    @invariant()
    def nothing_is_kept_without_need(self) -> None:
        for end, frames in zip(self.ends, self.under_way, strict=True):
            assert end.unsent <= sum(map(len, frames)) + LENGTH * len(frames)

    def teardown(self) -> None:
        for end in self.ends:
            end.close()


TestRing = RingMachine.TestCase
TestRing.settings = settings(max_examples=20, stateful_step_count=25)  # frames of a lane take their time


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_what_was_sent_before_the_end_is_received_before_the_end_is_told(frames: list[bytes]) -> None:
    server, client = pair()
    for frame in frames:
        client.send(frame)
    client.close()
    assert [server.receive(1.0) for _ in frames] == frames
    with pytest.raises(native.RingBroken, match="the peer is gone"):
        server.receive(1.0)
