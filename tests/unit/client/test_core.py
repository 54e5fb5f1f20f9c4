"""The rules of keeping mirrors in step, against a real engine, with frames that get lost, late and mixed up."""

import pytest

from draftd.client import Reason, Status
from draftd.client.rows import Rows
from draftd.wire import CloseReason, Error, Frame, StepReply
from tests.unit.client.conversation import REPEATING, Conversation


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def test_the_first_step_says_hello_and_opens_in_one_round_trip_and_the_next_only_commits(talk: Conversation) -> None:
    mirror = talk.open()
    (draft,) = talk.step(mirror)
    assert draft.tokens.tolist() == [4, 5]
    assert talk.sent() == ["hello", "sync commit"]
    talk.step(mirror, tokens=[4])
    assert talk.sent() == ["commit"]


def test_a_lost_commit_is_repaired_by_the_need_sync_that_follows(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror)
    talk.lose_next()
    talk.post(mirror, [4, 5, 1])
    (refused,) = talk.step(mirror, tokens=[2])
    assert (refused.reason, refused.status) == (Reason.REFUSED, Status.NEED_SYNC)
    talk.sent()
    (draft,) = talk.step(mirror, tokens=[3])
    assert talk.sent() == ["sync commit"]
    assert draft.tokens.tolist() == [4, 5]
    assert draft.base == len(REPEATING) + 5


def test_a_restarted_drafter_gets_hello_and_everything_within_the_same_call(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror, tokens=[4, 5])
    talk.restart_drafter()
    talk.sent()
    (draft,) = talk.step(mirror, tokens=[1, 2, 3])
    assert talk.sent() == ["commit", "hello", "sync commit"]
    assert draft.tokens.tolist() == [4, 5]
    assert draft.base == len(REPEATING) + 5


def test_after_a_restart_other_requests_sync_with_their_next_use_and_once(talk: Conversation) -> None:
    first, second = talk.open("first"), talk.open("second")
    talk.step(first, second)
    talk.restart_drafter()
    talk.step(first)
    talk.sent()
    (draft,) = talk.step(second)
    talk.step(second)
    assert talk.sent() == ["sync commit", "commit"]
    assert draft.tokens.tolist() == [4, 5]


def test_a_drafter_that_greets_with_another_incarnation_is_told_of_every_request_anew(talk: Conversation) -> None:
    first, second = talk.open("first"), talk.open("second")
    talk.step(first, second)
    talk.lose_connection(Rows([first], [[4]]))
    talk.restart_drafter()
    talk.sent()
    talk.step(first)
    (draft,) = talk.step(second)
    assert talk.sent() == ["hello", "sync commit", "sync commit"]
    assert draft.tokens.tolist() == [4, 5]
    assert talk.core.standing.counters.row_errors == 0


def test_a_late_reply_counts_for_the_requests_but_its_drafts_are_dropped(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror)
    late: list[bytes] = []
    on_time = talk.deliver
    talk.deliver = lambda frame: late.append(talk.engine.handle(frame).reply)
    (draft,) = talk.step(mirror, tokens=[4])
    assert draft.reason == Reason.LATE
    talk.deliver = on_time
    assert talk.core.receive(late[0]) is None
    assert talk.core.standing.counters.late_replies == 1
    (draft,) = talk.step(mirror, tokens=[5])
    assert draft.tokens.tolist() == [1, 2]
    assert talk.core.standing.counters.syncs == 1, "the late commit was taken: nothing to repair"


def test_a_late_need_sync_is_applied(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror)
    talk.lose_next()
    talk.post(mirror, [4])
    talk.post(mirror, [5])  # its answer, NEED_SYNC, is read though nobody waits for it
    talk.sent()
    (draft,) = talk.step(mirror, tokens=[1])
    assert talk.sent() == ["sync commit"]
    assert draft.tokens.tolist() == [2, 3]


def test_a_need_sync_older_than_the_sync_is_ignored(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror)
    talk.lose_next()
    talk.post(mirror, [4])
    held: list[bytes] = []
    on_time = talk.deliver
    talk.deliver = lambda frame: held.append(talk.engine.handle(frame).reply)
    talk.post(mirror, [5])
    talk.deliver = on_time
    talk.step(mirror)  # learns NEED_SYNC itself
    talk.step(mirror)  # syncs
    talk.core.receive(held[0])
    talk.sent()
    talk.step(mirror)
    assert talk.sent() == ["commit"]


def test_a_commit_with_an_id_that_is_no_token_is_taken_by_neither_side(talk: Conversation) -> None:
    mirror, other = talk.open("bad", vocabulary_size=100), talk.open("good", vocabulary_size=100)
    talk.step(mirror, other)
    refused, served = talk.step(mirror, other, tokens=[4, 100])
    assert (refused.reason, refused.status) == (Reason.REFUSED, Status.INVALID_TOKEN)
    assert mirror.length == len(REPEATING)
    assert "token 1 of the commit is 100" in talk.core.standing.last_error
    (draft,) = talk.step(mirror, tokens=[4])
    assert draft.tokens.tolist() == [5, 1]
    assert talk.core.standing.counters.syncs == 2, "the openings: nothing to repair"
    assert served.status == Status.INVALID_TOKEN


def test_a_refused_opening_is_not_repeated_and_says_why(talk: Conversation) -> None:
    mirror = talk.open(prompt=[1, 100, 2], vocabulary_size=100)
    for _ in range(3):
        (draft,) = talk.step(mirror, tokens=[3])
        assert draft.reason == Reason.REFUSED
    assert mirror.refused == Status.INVALID_TOKEN
    assert talk.core.standing.counters.syncs == 1


def test_close_then_open_of_the_same_id_is_a_new_request(talk: Conversation) -> None:
    old = talk.open("r", [1, 2, 3, 4, 5, 1, 2, 3])
    talk.step(old)
    talk.core.mirrors.close(old, CloseReason.FINISHED)
    new = talk.open("r", [9, 8, 1, 2, 3])
    talk.sent()
    (draft,) = talk.step(new)
    assert talk.sent() == ["close sync commit"]
    assert draft.tokens.tolist() == [], "only the old prompt went on after 1, 2, 3"
    talk.step(new, tokens=[9])
    assert talk.core.standing.counters.row_errors == 0


def test_open_of_an_open_id_replaces_it_under_the_next_epoch(talk: Conversation) -> None:
    old = talk.open("r", REPEATING)
    talk.step(old)
    new = talk.open("r", [9, 8, 9])
    assert old.closed
    assert (new.handle, new.epoch) == (old.handle, old.epoch + 1)
    (draft,) = talk.step(new)
    assert (draft.epoch, draft.tokens.tolist()) == (2, [8, 9])


def test_a_close_that_did_not_get_out_goes_with_the_next_frame(talk: Conversation) -> None:
    mirror, other = talk.open("closed"), talk.open("open")
    talk.step(mirror, other)
    talk.core.mirrors.close(mirror, CloseReason.FINISHED)
    talk.lose_connection(Rows([], []))
    talk.sent()
    talk.step(other)
    talk.step(other)
    assert talk.sent() == ["hello", "sync", "close commit", "commit"]
    assert talk.engine.statistics().sessions == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_request_closed_while_the_drafter_was_away_is_shared_whole(talk: Conversation, restarted: bool) -> None:
    mirror, other = talk.open("closed", [7]), talk.open("asking", [7, 60, 61])
    talk.step(mirror, other, tokens=[62])
    talk.core.mirrors.miss([mirror], [[63, 64]])
    talk.core.mirrors.close(mirror, CloseReason.FINISHED)
    if restarted:
        talk.restart_drafter()
    talk.step(other)
    talk.wait_until_indexed()
    (draft,) = talk.step(other, tokens=[62, 63])
    assert 64 in draft.tokens.tolist()


def test_unasked_tails_and_unknown_frames_are_skipped_and_counted(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror)
    assert talk.core.receive(Frame(reply=StepReply(step=0)).SerializeToString()) is None
    assert talk.core.receive(b"\xff\xff\xff") is None
    assert talk.core.receive(b"") is None
    assert talk.core.receive(Frame(reply=StepReply(step=77777)).SerializeToString()) is None
    assert (talk.core.standing.counters.unasked_tails, talk.core.standing.counters.unknown_frames) == (1, 3)
    (draft,) = talk.step(mirror, tokens=[4])
    assert draft.tokens.tolist() == [5, 1]


def test_an_answer_with_other_rows_than_asked_for_is_refused(talk: Conversation) -> None:
    first, second = talk.open("first"), talk.open("second", [9, 8, 9])
    talk.step(first, second)

    def swapped(frame: bytes) -> bytes:
        reply = Frame.FromString(talk.engine.handle(frame).reply)
        handles = reply.reply.tail.request
        reply.reply.tail.request = handles[4:] + handles[:4]
        return reply.SerializeToString()

    talk.deliver = swapped
    drafts = talk.step(first, second)
    assert [draft.reason for draft in drafts] == [Reason.REFUSED, Reason.REFUSED]
    assert "not those that were asked for" in talk.core.standing.last_error


def test_a_whole_step_that_is_refused_is_told_again_later(talk: Conversation) -> None:
    mirror = talk.open()
    talk.step(mirror)
    on_time = talk.deliver

    def broken(frame: bytes) -> bytes:
        step = Frame.FromString(frame).step.step
        return Frame(error=Error(status=Status.INTERNAL, message="a defect", step=step)).SerializeToString()

    talk.deliver = broken
    (draft,) = talk.step(mirror, tokens=[4])
    assert (draft.reason, draft.status) == (Reason.REFUSED, Status.INTERNAL)
    assert talk.core.standing.last_error == talk.core.standing.last_refusal == "INTERNAL: a defect"
    talk.deliver = on_time
    talk.sent()
    (draft,) = talk.step(mirror, tokens=[5])
    assert talk.sent() == ["sync commit"]
    assert draft.tokens.tolist() == [1, 2]


def test_an_answer_with_ids_outside_the_vocabulary_is_not_given_on_and_health_says_so(talk: Conversation) -> None:
    def junk(frame: bytes) -> bytes:
        answer = Frame.FromString(talk.engine.handle(frame).reply)
        answer.reply.tail.tokens = b"\xff" * len(answer.reply.tail.tokens)
        return answer.SerializeToString()

    mirror = talk.open()
    talk.deliver = junk
    (draft,) = talk.step(mirror)
    assert (len(draft), draft.reason, draft.status) == (0, Reason.REFUSED, Status.INTERNAL)
    assert "cannot be read: token id -1" in talk.core.standing.last_error
