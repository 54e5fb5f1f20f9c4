"""A drafter that stays connected and does not answer in time (SIGSTOP)."""

import threading

import pytest
import zmq

from draftd.breaker import FAILURES_TO_OPEN
from draftd.client import AsyncClient, Client, Reason
from draftd.wire import Frame, Status
from tests.contract.frames import commit_frame, hello_frame, sync_frame
from tests.faults.process import ServerProcess, until

PATIENT = 10.0  # seconds: once the drafter runs again, a slow machine is not a late answer
TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
MANY = 50_000  # commits: more than any queue to a drafter holds


def test_a_late_answer_is_an_empty_draft_and_nothing_is_lost(server: ServerProcess, endpoint: str) -> None:
    with Client(endpoint, deadline=0.05) as client:
        request = client.open("r", TEXT, wait=True, deadline=PATIENT)
        syncs = client.health().counters.syncs
        server.freeze()
        assert request.step([4], budget=4).reason == Reason.LATE
        request.commit([5])
        server.thaw()
        client.deadline = PATIENT
        until(lambda: len(request.draft(4)))
        draft = request.step([6], budget=4)
        assert draft.base == len(TEXT) + 3
        assert draft.tokens.tolist()[:2] == [7, 8]
        assert client.health().counters.late_replies >= 1
        assert client.health().counters.syncs == syncs, "the late commits were taken: nothing was sent again"


def test_the_circuit_breaker_stops_asking_and_a_probe_finds_the_drafter_again(
    server: ServerProcess, endpoint: str
) -> None:
    with Client(endpoint, deadline=0.01) as client:
        request = client.open("r", TEXT, wait=True, deadline=PATIENT)
        server.freeze()
        reasons = [request.draft(4).reason for _ in range(FAILURES_TO_OPEN + 1)]
        assert reasons == [Reason.LATE] * FAILURES_TO_OPEN + [Reason.OFF]
        assert client.health().state == "off"
        assert client.health().last_error == "no answer within the deadline"
        server.thaw()
        until(lambda: request.draft(4).reason == Reason.NOT_EMPTY)
        assert client.health().state == "serving"


def test_what_was_committed_while_the_breaker_was_open_counts(server: ServerProcess, endpoint: str) -> None:
    with Client(endpoint, deadline=0.01) as client:
        paused = client.open("paused", TEXT, wait=True, deadline=PATIENT, history=False)
        steady = client.open("steady", TEXT, wait=True, deadline=PATIENT, history=False)
        server.freeze()
        while client.health().state != "off":
            paused.draft(4)
        output = [4, 5, 6, 9] * 25
        for token in output:
            paused.commit([token])
        server.thaw()
        client.deadline = PATIENT
        until(lambda: len(paused.draft(4)))
        draft = paused.step([4], budget=8)
        expected = steady.step([*output, 4], budget=8)  # a draft that is used teaches
        assert draft.base == len(TEXT) + len(output) + 1
        assert draft.tokens.tolist() == expected.tokens.tolist()
        assert draft.parents.tolist() == expected.parents.tolist()
        assert draft.survival.tolist() == expected.survival.tolist()


def test_more_commits_than_the_queues_hold_are_repaired_by_a_sync(server: ServerProcess, endpoint: str) -> None:
    with Client(endpoint, deadline=PATIENT) as client:
        request = client.open("r", TEXT, wait=True)
        server.freeze()
        commits = 0
        while client.health().counters.hellos == 1 and commits < MANY:
            request.commit([TEXT[(3 + commits) % 8]])
            commits += 1
        assert commits < MANY, "the queues never filled"
        server.thaw()
        until(lambda: len(request.draft(4)))
        assert request.draft(1).base == len(TEXT) + commits
        assert request.draft(1).tokens.tolist() == [TEXT[(3 + commits) % 8]]


def test_who_waits_for_a_turn_at_a_shared_client_waits_no_longer_than_the_deadline(server: ServerProcess) -> None:
    with Client(server.zmq, deadline=PATIENT) as client:
        request = client.open("r", TEXT, wait=True)
        server.freeze()
        client.deadline = 0.05
        has_turn = threading.Thread(target=lambda: client.open("other", TEXT, wait=True, deadline=PATIENT))
        has_turn.start()
        until(lambda: client.health().counters.syncs == 2)
        assert request.step([4], budget=2).reason == Reason.LATE
        request.commit([5])
        server.thaw()
        has_turn.join()
        client.deadline = PATIENT
        draft = request.step([6], budget=2)
        assert (draft.base, draft.tokens.tolist()) == (len(TEXT) + 3, [7, 8])


async def test_an_async_client_does_not_wait_longer_than_its_deadline_either(server: ServerProcess) -> None:
    for endpoint in (server.zmq, server.grpc):
        async with AsyncClient(endpoint, deadline=0.05) as client:
            request = await client.open("r", TEXT, wait=True, deadline=PATIENT)
            server.freeze()
            assert (await request.step([4], budget=4)).reason == Reason.LATE
            server.thaw()
            client.deadline = PATIENT
            while not len(await request.draft(4)):
                pass
            draft = await request.step([5], budget=4)
            assert draft.base == len(TEXT) + 2
            assert draft.tokens.tolist()[:1] == [6]


@pytest.fixture
def raw(server: ServerProcess) -> "zmq.Socket[bytes]":
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.RCVTIMEO, 20_000)
    socket.connect(server.zmq)
    return socket


def test_a_drafter_that_is_behind_sheds_drafts_and_takes_every_commit(
    server: ServerProcess, raw: "zmq.Socket[bytes]"
) -> None:
    frames = 500
    with raw:
        raw.send(hello_frame(7))
        raw.recv()
        raw.send(sync_frame(7, step=1, prompt=TEXT))
        raw.recv()
        server.freeze()
        for number in range(frames):
            tokens = [TEXT[(3 + number) % 8]]
            raw.send(commit_frame(7, step=2 + number, start=len(TEXT) + number, tokens=tokens, max_nodes=2))
        server.thaw()
        replies = [Frame.FromString(raw.recv()).reply for _ in range(frames)]
        assert [reply.step for reply in replies] == list(range(2, 2 + frames))
        assert {reply.tail.status for reply in replies} == {bytes([Status.OK])}
        reasons = [Reason(reply.tail.reason[0]) for reply in replies]
        assert Reason.SHED in reasons
        assert reasons[-1] == Reason.NOT_EMPTY, "when it has caught up it drafts again"
