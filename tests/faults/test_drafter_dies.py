"""`kill -9` of the drafter: empty drafts within the deadline, and drafting resumes without an engine restart."""

import pytest

from draftd.client import AsyncClient, Client, Draft, Reason, Request
from draftd.replay.verification import verify
from tests.faults.process import ServerProcess, until

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
GONE = {Reason.LATE, Reason.UNREACHABLE, Reason.OFF}
DEADLINE = 1.0  # seconds: a slow machine is not a late answer


def drafted(draft: Draft) -> list[tuple[int, int, float]]:
    return list(zip(draft.tokens.tolist(), draft.parents.tolist(), draft.survival.tolist(), strict=True))


def test_a_killed_drafter_gives_empty_drafts_and_a_restarted_one_drafts_as_if_nothing_had_been(
    server: ServerProcess, endpoint: str
) -> None:
    with Client(endpoint, deadline=DEADLINE) as client:
        request = client.open("r", TEXT, wait=True)
        assert request.draft(4).tokens.tolist()[:1] == [4]

        server.kill()
        for token in (4, 5, 6):
            draft = request.step([token], budget=4)
            assert len(draft) == 0
            assert draft.reason in GONE
        assert client.health().state in ("failing", "off")

        server.start()
        until(lambda: len(request.draft(4)))
        recovered = request.step([7], budget=4)
        fresh = client.open("fresh", [*TEXT, 4, 5, 6, 7], history=False, wait=True).draft(4)
        assert drafted(recovered) == drafted(fresh)
        assert recovered.base == len(TEXT) + 4
        assert client.health().state == "serving"


def test_what_the_engine_emits_is_what_it_would_emit_alone(server: ServerProcess, endpoint: str) -> None:
    """An engine verifies its drafts against the target, which here goes round the same text."""
    target = TEXT[:8] * 40
    emitted: list[int] = []
    with Client(endpoint, deadline=DEADLINE) as client:
        request = client.open("r", TEXT[:8], wait=True)
        draft = request.draft(4)
        accepted_by_third = [0, 0, 0]
        while len(emitted) < len(target):
            third = 3 * len(emitted) // len(target)
            verified = verify(draft.tokens.tolist(), draft.parents.tolist(), target, len(emitted))
            new = target[len(emitted) : len(emitted) + verified.emitted]
            accepted_by_third[third] += verified.accepted
            emitted += new
            if third == 0 and 3 * len(emitted) // len(target) == 1:
                server.kill()
            if third == 1 and 3 * len(emitted) // len(target) == 2:
                server.start()
                until(lambda: len(request.draft(4)))
            draft = request.step(new, budget=4)
    assert emitted == target
    assert accepted_by_third[1] < accepted_by_third[0], "without a drafter, plain decoding"
    assert accepted_by_third[2] > 0


def test_a_kill_between_commit_and_draft_loses_nothing(server: ServerProcess, endpoint: str) -> None:
    with Client(endpoint, deadline=DEADLINE) as client:
        request = client.open("r", TEXT, wait=True)
        request.commit([4, 5])
        server.kill()
        request.commit([6])
        server.start()
        until(lambda: len(request.draft(4)))
        draft = request.draft(4)
        assert draft.base == len(TEXT) + 3
        assert draft.tokens.tolist()[:2] == [7, 8]


def test_requests_opened_while_the_drafter_is_away_are_served_when_it_is_back(
    server: ServerProcess, endpoint: str
) -> None:
    server.kill()
    with Client(endpoint, deadline=DEADLINE) as client:
        requests = [client.open(f"r{number}", TEXT) for number in range(3)]
        drafts = client.step({request: [4] for request in requests})
        assert {draft.reason for draft in drafts.values()} <= GONE
        server.start()

        def all_served() -> bool:
            return all(len(draft) for draft in client.step({request: [] for request in requests}).values())

        until(all_served)


def test_a_whole_batch_re_syncs_after_a_restart(server: ServerProcess, endpoint: str) -> None:
    with Client(endpoint, deadline=DEADLINE) as client:
        requests = [client.open(f"r{number}", TEXT) for number in range(20)]

        def step(tokens: list[int]) -> dict[Request, Draft]:
            return client.step(dict.fromkeys(requests, tokens), max_nodes=4)

        until(lambda: all(len(draft) for draft in step([]).values()))
        server.kill()
        server.start()
        until(lambda: all(len(draft) for draft in step([]).values()))
        assert {draft.tokens.tolist()[0] for draft in step([4, 5]).values()} == {6}


@pytest.mark.parametrize("transport", ["zmq", "grpc"])
async def test_an_async_client_outlives_its_drafter_too(server: ServerProcess, transport: str) -> None:
    async with AsyncClient(getattr(server, transport), deadline=DEADLINE) as client:
        request = await client.open("r", TEXT, wait=True)
        assert (await request.draft(4)).tokens.tolist()[:1] == [4]
        server.kill()
        assert (await request.step([4], budget=4)).reason in GONE
        server.start()
        while not len(await request.draft(4)):
            assert client.health().state != "closed"
        draft = await request.step([5], budget=4)
        assert draft.tokens.tolist()[:1] == [6]
        assert draft.base == len(TEXT) + 2
