"""Whose frame is next."""

from draftd.transport.waiting_frames import PEER_SECONDS, WaitingFrames


def taken(waiting: WaitingFrames) -> list[bytes]:
    """All that can be taken, each answered at once."""
    frames = []
    while waiting.can_take():
        peer, frame, _ = waiting.take()
        frames.append(frame)
        waiting.answered(peer)
    return frames


def test_peers_take_turns_and_frames_of_one_stay_in_order() -> None:
    waiting = WaitingFrames()
    for frame in (b"a1", b"a2", b"a3", b"b1", b"c1", b"c2"):
        waiting.add(frame[:1], frame, 0.0)
    assert taken(waiting) == [b"a1", b"b1", b"c1", b"a2", b"c2", b"a3"]
    assert (len(waiting), waiting.bytes) == (0, 0)


def test_what_waits_is_counted_in_frames_and_bytes() -> None:
    waiting = WaitingFrames()
    waiting.add(b"a", b"12345", 0.0)
    waiting.add(b"b", b"678", 0.0)
    assert (len(waiting), waiting.bytes) == (2, 8)
    waiting.take()
    assert (len(waiting), waiting.bytes) == (1, 3)


def test_while_a_frame_is_answered_the_next_of_its_peer_waits() -> None:
    waiting = WaitingFrames()
    waiting.add(b"a", b"a1", 0.0)
    assert waiting.take() == (b"a", b"a1", 0)
    waiting.add(b"a", b"a2", 0.0)
    waiting.add(b"a", b"a3", 0.0)
    assert not waiting.can_take()
    waiting.add(b"b", b"b1", 0.0)
    assert waiting.take() == (b"b", b"b1", 0)
    assert not waiting.can_take()
    waiting.answered(b"a")
    assert waiting.take() == (b"a", b"a2", 1)


def test_a_peer_is_alone_until_another_is_heard_and_again_when_that_is_silent() -> None:
    waiting = WaitingFrames()
    waiting.add(b"a", b"a1", 0.0)
    assert waiting.from_one_peer()
    waiting.add(b"b", b"b1", 0.0)
    assert not waiting.from_one_peer()
    taken(waiting)
    waiting.add(b"a", b"a2", 2 * PEER_SECONDS)
    waiting.forget_silent(2 * PEER_SECONDS)
    assert waiting.from_one_peer()
    assert taken(waiting) == [b"a2"]


def test_a_silent_peer_with_a_frame_under_way_is_not_forgotten() -> None:
    waiting = WaitingFrames()
    waiting.add(b"a", b"a1", 0.0)
    waiting.take()
    waiting.add(b"b", b"b1", 10.0)
    waiting.forget_silent(10.0)
    assert not waiting.from_one_peer()
    waiting.answered(b"a")
    waiting.forget_silent(10.0)
    assert waiting.from_one_peer()
