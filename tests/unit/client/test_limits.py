"""No request's size is another's trouble: what a frame can't hold goes in several, or is refused alone."""

import pytest

from draftd.client import Reason, Status
from draftd.client.limits import Limits
from draftd.client.mirror import Mirror
from draftd.client.rows import ROW_BYTES, Rows
from draftd.config import EngineSettings
from draftd.wire import CloseReason, DraftSync, Frame
from tests.unit.client.conversation import REPEATING, Conversation

FRAME_BYTES = 1 << 16
SERVED, REFUSED = (Reason.NOT_EMPTY, Status.OK), (Reason.REFUSED, Status.LIMIT_EXCEEDED)


@pytest.fixture
def talk() -> Conversation:
    return Conversation(EngineSettings(max_frame_bytes=FRAME_BYTES, max_rows=4))


def text(tokens: int) -> list[int]:
    return (REPEATING * (tokens // len(REPEATING) + 1))[:tokens]


@pytest.mark.parametrize("cannot_be_read", [False, True])
def test_an_opening_that_no_frame_takes_is_refused_alone(talk: Conversation, cannot_be_read: bool) -> None:
    """Too long to be read is an answer to no step: that costs one deadline, and no more."""
    good, big = talk.open("good"), talk.open("big", text(FRAME_BYTES // 4))
    if cannot_be_read:
        deliver = talk.deliver
        talk.deliver = lambda frame: deliver(frame if len(frame) < FRAME_BYTES else b"\xff" * (FRAME_BYTES + 1))
        assert {draft.reason for draft in talk.step(good, big, tokens=[4])} == {Reason.LATE}
        talk.step(good, big)  # learns that the openings were lost
    for token in [5, 1, 2] if cannot_be_read else [4, 5, 1]:
        assert [(draft.reason, draft.status) for draft in talk.step(good, big, tokens=[token])] == [SERVED, REFUSED]
    assert big.refused == Status.LIMIT_EXCEEDED
    assert "request 'big': LIMIT_EXCEEDED" in talk.core.standing.last_refusal
    assert f"engine.max_frame_bytes is {FRAME_BYTES}" in talk.core.standing.last_error


def test_a_refused_request_closes_like_any_other(talk: Conversation) -> None:
    good, big = talk.open("good"), talk.open("big", text(FRAME_BYTES // 4))
    talk.step(good, big)
    talk.core.mirrors.close(big, CloseReason.FINISHED)
    for token in (4, 5):
        (draft,) = talk.step(good, tokens=[token])
        assert draft.reason == Reason.NOT_EMPTY
    assert talk.engine.statistics().frame_errors.get("LIMIT_EXCEEDED") == 1, "the first, before the limits were known"


def test_openings_that_one_frame_does_not_take_are_spread_over_steps(talk: Conversation) -> None:
    talk.step(talk.open("first"))
    talk.longest_frame = 0
    mirrors = [talk.open(str(number), text(FRAME_BYTES // 10)) for number in range(4)]  # 26 KiB: two in a frame
    reasons = [[draft.reason for draft in talk.step(*mirrors)] for _ in range(3)]
    assert [row.count(Reason.NOT_EMPTY) for row in reasons] == [2, 4, 4]
    assert talk.longest_frame <= FRAME_BYTES


def test_re_syncs_of_much_text_are_spread_over_steps(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    mirrors = [talk.open(str(number)) for number in range(3)]
    monkeypatch.setattr("draftd.client.mirrors.SYNC_BYTES_PER_STEP", mirrors[0].sync_bytes)
    served = [[draft.reason for draft in talk.step(*mirrors)].count(Reason.NOT_EMPTY) for _ in range(3)]
    assert served == [1, 2, 3]


def test_an_opening_that_does_not_fit_beside_the_rows_goes_ahead_of_them(talk: Conversation) -> None:
    steady = talk.open("steady")
    talk.step(steady)
    mirror = talk.open("long", text(FRAME_BYTES // 4 - 2000))
    talk.sent()
    drafts = talk.step(mirror, steady, tokens=text(1500))
    assert talk.sent() == ["sync", "commit"]
    assert [draft.reason for draft in drafts] == [Reason.NOT_EMPTY, Reason.NOT_EMPTY]


def test_more_rows_than_a_step_takes_are_answered_by_several_messages(talk: Conversation) -> None:
    mirrors = [talk.open(str(number)) for number in range(10)]
    for token in (4, 5):
        drafts = talk.step(*mirrors, tokens=[token])
        assert [draft.tokens.tolist() for draft in drafts] == [[5, 1] if token == 4 else [1, 2]] * 10
        assert {draft.base for draft in drafts} == {mirrors[0].length}
    talk.sent()
    drafts = talk.step(*mirrors, budget=7)
    assert talk.sent() == ["commit"] * 3
    assert sum(map(len, drafts)) == 7
    drafts = talk.step(*mirrors, budget=1)
    assert sum(map(len, drafts)) == 1
    assert talk.core.standing.counters.row_errors == 0


def test_a_part_that_gets_no_answer_leaves_the_others_alone(talk: Conversation) -> None:
    mirrors = [talk.open(str(number)) for number in range(10)]
    talk.step(*mirrors)
    talk.lose_next()
    reasons = [draft.reason for draft in talk.step(*mirrors, tokens=[4])]
    assert reasons == [Reason.LATE] * 4 + [Reason.NOT_EMPTY] * 6


def test_a_commit_that_no_frame_takes_refuses_its_own_request(talk: Conversation) -> None:
    long, short = talk.open("long"), talk.open("short")
    talk.step(long, short)
    for outgoing in talk.core.post(Rows([long, short], [text(FRAME_BYTES), [4]])):
        for frame in outgoing.frames:
            assert len(frame) <= FRAME_BYTES
            talk.send(frame)
    assert [(draft.reason, draft.status) for draft in talk.step(long, short)] == [REFUSED, SERVED]


def test_an_opening_posted_before_the_limits_are_known_is_told_again(talk: Conversation) -> None:
    mirrors = [talk.open(str(number), text(FRAME_BYTES // 10)) for number in range(3)]
    for outgoing in talk.core.post(Rows(mirrors, [[], [], []])):
        for frame in outgoing.frames:
            talk.send(frame)
    assert [draft.reason for draft in talk.step(*mirrors)].count(Reason.NOT_EMPTY) == 2
    assert {draft.reason for draft in talk.step(*mirrors)} == {Reason.NOT_EMPTY}


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_parts_are_as_long_as_the_limits_allow_and_hold_every_row_once(rows: int) -> None:
    mirrors = [Mirror(DraftSync(request=number), b"") for number in range(12)]
    tokens = [[number] * number for number in range(12)]
    whole = Rows(mirrors, tokens, verified=[[True] * number for number in range(12)], nodes=range(12))
    limits = Limits(frame_bytes=4096 + 5 * ROW_BYTES, rows=rows)
    parts = whole.parts(limits)
    assert [mirror for part in parts for mirror in part.mirrors] == mirrors
    assert [list(row) for part in parts for row in part.tokens] == tokens
    assert [nodes for part in parts for nodes in part.without_tokens().nodes or ()] == list(range(12))
    assert b"".join(part.column for part in parts) == whole.column
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        assert len(part.mirrors) <= rows
        assert part.size <= limits.payload_bytes or len(part.mirrors) == 1
        if following is not None and len(part.mirrors) < rows:
            verified = [*(part.verified or []), *(following.verified or [])[:1]]
            longer = Rows(part.mirrors + following.mirrors[:1], [*part.tokens, following.tokens[0]], verified)
            assert longer.size > limits.payload_bytes


def test_the_drafter_names_the_step_of_a_frame_that_is_too_long(talk: Conversation) -> None:
    talk.step(talk.open("first"))
    frame = Frame()
    frame.step.verifier, frame.step.step = 1, 77
    frame.step.commit.tokens = bytes(FRAME_BYTES)
    error = Frame.FromString(talk.engine.handle(frame.SerializeToString()).reply).error
    assert (error.status, error.step) == (Status.LIMIT_EXCEEDED, 77)
