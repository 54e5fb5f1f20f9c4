"""The verbs mean the same over every channel, and what the drafter says reaches the caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from draftd.client import AsyncClient, Client, Draft, Namespace, Reason, Source, Status
from draftd.client.client import ChannelClient
from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions
from draftd.config import EngineSettings
from draftd.engine import Engine
from tests.contract.serving import grpc_served, ring_served, zmq_served

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
PATIENT = 30.0


@pytest.fixture
def engine() -> Engine:
    return Engine(EngineSettings(max_rows=4))


@contextmanager
def client_over(channel: str, engine: Engine, directory: Path) -> Iterator[ChannelClient]:
    if channel == "local":
        with LocalClient(engine) as client:
            yield client
        return
    served = {"ring": ring_served, "zmq": zmq_served, "grpc": grpc_served}[channel]
    with served(engine, directory) as endpoint, Client(endpoint, deadline=PATIENT) as client:
        yield client


@pytest.fixture(params=["local", "ring", "zmq", "grpc"])
def client(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[ChannelClient]:
    with client_over(request.param, engine, tmp_path) as client:
        yield client


@pytest.fixture
def local(engine: Engine) -> Iterator[ChannelClient]:
    with LocalClient(engine) as client:
        yield client


def content(draft: Draft) -> tuple[list[int], list[int], list[float], list[int]]:
    return draft.tokens.tolist(), draft.parents.tolist(), draft.survival.tolist(), draft.source.tolist()


def test_draft_commit_step_and_close(client: ChannelClient) -> None:
    request = client.open("r", TEXT, wait=True)
    draft = request.draft(budget=2)
    assert draft.tokens.tolist() == [4, 5]
    assert draft.parents.tolist() == [-1, 0]
    assert draft.source.tolist() == [Source.OWN_TEXT, Source.OWN_TEXT]
    assert (draft.base, draft.epoch, draft.reason) == (len(TEXT), 1, Reason.NOT_EMPTY)
    request.commit([4, 5])
    draft = request.step([6], budget=1)
    assert (draft.tokens.tolist(), draft.base, request.length) == ([7], len(TEXT) + 3, len(TEXT) + 3)
    request.close("finished")
    assert request.draft().reason == Reason.CLOSED
    request.commit([7])
    request.close()
    assert request.length == len(TEXT) + 3


def test_one_message_steps_many_requests_in_the_order_given(client: ChannelClient) -> None:
    requests = [client.open(f"r{number}", [number, 90 + number] * 2, history=False) for number in range(1, 9)]
    drafts = client.step({request: np.array([number]) for number, request in enumerate(requests, 1)}, max_nodes=1)
    assert list(drafts) == requests
    assert [draft.tokens.tolist() for draft in drafts.values()] == [[90 + number] for number in range(1, 9)]
    drafts = client.step({request: [90 + number] for number, request in enumerate(requests, 1)}, max_nodes=1)
    assert [draft.tokens.tolist() for draft in drafts.values()] == [[number] for number in range(1, 9)]
    assert client.step({}) == {}


def test_the_budget_limits_the_whole_batch_and_max_nodes_each_request(client: ChannelClient) -> None:
    requests = [client.open(f"r{number}", TEXT) for number in range(4)]
    drafts = client.step({request: [] for request in requests}, max_nodes=3)
    assert [len(draft) for draft in drafts.values()] == [3, 3, 3, 3]
    drafts = client.step({request: [] for request in requests}, budget=5, max_nodes=3)
    assert sum(len(draft) for draft in drafts.values()) == 5


NOTHING = ({"budget": 0}, {"max_nodes": 0}, {"budget": 0, "max_nodes": 3}, {"budget": 5, "max_nodes": 0})


@pytest.mark.parametrize("rows", [2, 5])
def test_a_budget_of_0_only_commits(client: ChannelClient, engine: Engine, rows: int) -> None:
    """Whatever names the 0, and also where a step takes several messages."""
    client.check()  # the limits are known from here on
    requests = [client.open(f"r{number}", TEXT, history=False, wait=True) for number in range(rows)]
    for token, wish in zip([4, 5, 6, 7], NOTHING, strict=True):
        drafts = client.step({request: [token] for request in requests}, **wish)
        assert {(len(draft), draft.reason, draft.status) for draft in drafts.values()} == {
            (0, Reason.NOT_ASKED, Status.OK)
        }
    assert requests[0].step([8], budget=0).reason == requests[0].draft(0).reason == Reason.NOT_ASKED
    assert engine.statistics().delivered_tails == 0
    assert [request.draft(1).tokens.tolist() for request in requests] == [[1], *[[8]] * (rows - 1)]


async def test_a_budget_of_0_of_an_async_client_only_commits(engine: Engine, tmp_path: Path) -> None:
    with zmq_served(engine, tmp_path) as endpoint:
        async with AsyncClient(endpoint, deadline=PATIENT) as client:
            request = await client.open("r", TEXT, wait=True)
            for token, wish in zip([4, 5, 6, 7], NOTHING, strict=True):
                drafts = await client.step({request: [token]}, **wish)
                assert (len(drafts[request]), drafts[request].reason) == (0, Reason.NOT_ASKED)
            assert (await request.step([8], budget=0)).reason == (await request.draft(0)).reason == Reason.NOT_ASKED
            assert (await request.draft(1)).tokens.tolist() == [1]


def test_a_closed_request_in_a_batch_leaves_the_others_alone(client: ChannelClient) -> None:
    first, second = client.open("first", TEXT), client.open("second", TEXT)
    first.close()
    drafts = client.step({first: [4], second: [4]}, max_nodes=1)
    assert list(drafts) == [first, second]
    assert drafts[first].reason == Reason.CLOSED
    assert drafts[second].tokens.tolist() == [5]


def test_waiting_for_an_opening_means_that_what_was_closed_before_is_indexed(client: ChannelClient) -> None:
    for repetition in range(20):
        tokens = list(range(1000 + 10 * repetition, 1010 + 10 * repetition))
        finished = client.open("finished", [])
        finished.commit(tokens)
        finished.close()
        draft = client.open(f"next{repetition}", tokens[:4], shape="chain", wait=True).draft(3)
        assert draft.tokens.tolist() == tokens[4:7]
        assert set(draft.source.tolist()) == {Source.SHARED_HISTORY}


async def test_an_async_client_drafts_the_same(local: ChannelClient, tmp_path: Path) -> None:
    expected = local.open("expected", TEXT, history=False).step([4], budget=8)
    for served in (zmq_served, grpc_served):
        with served(Engine(EngineSettings()), tmp_path) as endpoint:  # one that has learned from nothing else
            async with AsyncClient(endpoint, deadline=PATIENT) as client:
                request = await client.open("r", TEXT, history=False, wait=True)
                await request.commit([4])
                assert content(await request.draft(budget=8)) == content(expected)
                drafts = await client.step({request: [5]}, budget=4, max_nodes=2)
                assert len(drafts[request]) == 2
                await request.close()
                assert (await request.draft()).reason == Reason.CLOSED
                assert client.health().state == "serving"


CHOICES: dict[str, tuple[OpenOptions, list[int]]] = {
    "what is likeliest": ({"preset": "learned", "max_breadth": 1, "max_depth": 1}, [7]),
    "what came last": ({"preset": "ngram_bfs", "max_breadth": 1, "max_depth": 1}, [8]),
    "what came most often": ({"preset": "ngram_prob", "max_breadth": 1, "max_depth": 2}, [7, 1]),
    "as long as half of the match": ({"preset": "suffix_decoding", "max_spec_factor": 0.7}, [7, 1]),
    "nothing that is unlikely": ({"preset": "suffix_decoding", "min_token_prob": 0.8}, []),
    "nothing that is not certain": ({"preset": "ngram_prob", "min_survival": 1.0}, []),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_request_chooses_how_its_trees_are_made(choice: str, client: ChannelClient) -> None:
    options, expected = CHOICES[choice]
    request = client.open("r", [1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3], wait=True, **options)
    assert request.draft().tokens.tolist() == expected


async def test_a_request_of_an_async_client_chooses_too(engine: Engine, tmp_path: Path) -> None:
    with zmq_served(engine, tmp_path) as endpoint:
        async with AsyncClient(endpoint, deadline=PATIENT) as client:
            for options, expected in CHOICES.values():
                text = [1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3]
                request = await client.open("r", text, wait=True, history=False, **options)
                assert (await request.draft()).tokens.tolist() == expected


def test_an_empty_draft_says_which_of_all_reasons(client: ChannelClient, engine: Engine) -> None:
    assert client.open("a", [1, 2, 3], history=False).draft().reason == Reason.NO_MATCH
    assert client.open("b", [1, 5, 1, 6, 1]).draft(min_survival=1.0).reason == Reason.BELOW_THRESHOLD
    stopped = client.open("c", TEXT, stop_ids=[4])
    assert stopped.step([4]).reason == Reason.STOPPED
    full = client.open("d", TEXT, max_new_tokens=2)
    assert len(full.draft()) == 1
    assert full.step([4]).reason == Reason.LENGTH_LIMIT
    refused = client.open("e", [1, -7, 2]).draft()
    assert (refused.reason, refused.status) == (Reason.REFUSED, Status.INVALID_TOKEN)
    pair = [client.open("f", TEXT), client.open("g", TEXT)]
    reasons = {draft.reason for draft in client.step({request: [] for request in pair}, budget=1).values()}
    assert reasons == {Reason.NOT_EMPTY, Reason.BUDGET_SPENT}
    counted = engine.statistics().empty_tails
    for reason in ("NO_MATCH", "BELOW_THRESHOLD", "STOPPED", "LENGTH_LIMIT", "REFUSED", "BUDGET_SPENT"):
        assert counted[reason] == 1, reason


@pytest.mark.parametrize("verified", [1, [True, False, False]])
def test_acceptance_counts_only_what_the_caller_says_was_verified(
    client: ChannelClient, engine: Engine, verified: int | list[bool]
) -> None:
    request = client.open("r", TEXT, shape="chain", wait=True)
    assert len(request.draft(budget=3)) == 3
    request.step([4, 90], verified=verified)
    counted = engine.statistics()
    assert (sum(counted.drafted_per_position), counted.draft_tokens, counted.accepted_tokens) == (3, 1, 1)


def test_a_draft_without_a_commit_before_it_counts_no_verify_step(client: ChannelClient, engine: Engine) -> None:
    request = client.open("r", TEXT, wait=True)
    request.draft(budget=3)
    request.draft(budget=3)
    assert (engine.statistics().drafts, engine.statistics().stale_tails) == (0, 0)


def test_requests_of_two_clients_with_the_same_ids_stay_apart(client: ChannelClient, engine: Engine) -> None:
    with LocalClient(engine) as other:
        ours, theirs = client.open("r", TEXT, history=False), other.open("r", [1, 2, 3, 9, 1, 2, 3], history=False)
        assert ours.draft(1).tokens.tolist() == [4]
        assert theirs.draft(1).tokens.tolist() == [9]
        theirs.close()
        assert ours.step([4], budget=1).tokens.tolist() == [5]


def test_options_of_the_opening_change_what_is_read_and_shared(local: ChannelClient) -> None:
    def say(request_id: str, output: list[int], **options: object) -> None:
        request = local.open(request_id, [], **options)  # type: ignore[arg-type]
        request.commit(output)
        request.close()

    def drafted(prompt: list[int], **options: object) -> list[int]:
        request = local.open("question", prompt, wait=True, **options)  # type: ignore[arg-type]
        return request.draft(budget=16).tokens.tolist()

    say("shared", [10, 11])
    say("kept", [20, 21], share="none")
    say("in a group", [30, 31], share="group", group="g")
    say("of an adapter", [40, 41], adapter="sql")
    say("of a tenant", [50, 51], tenant="acme")
    assert 11 in drafted([10])
    assert 11 not in drafted([10], history=False)
    assert 21 not in drafted([20])
    assert 31 not in drafted([30])
    assert 31 in drafted([30], group="g")
    assert 41 not in drafted([40])
    assert 41 in drafted([40], adapter="sql")
    assert 51 not in drafted([50])
    assert 51 in drafted([50], tenant="acme")


def test_an_empty_tenant_is_nobodys_tenant(local: ChannelClient) -> None:
    with pytest.raises(ValueError, match="tenant is empty"):
        Namespace(tenant="")
    request = local.open("r", TEXT, tenant="")
    assert request.draft().reason == Reason.REFUSED
    assert request.refused == Status.INVALID_ARGUMENT
    assert "tenant is empty" in local.health().last_error


def test_a_silent_verifier_is_reclaimed_and_re_syncs_when_it_speaks_again() -> None:
    now = 0.0
    engine = Engine(EngineSettings(session_ttl=600), clock=lambda: now)
    with LocalClient(engine) as client:
        request = client.open("r", TEXT)
        request.step([4], budget=2)
        now = 601.0
        assert engine.expire() == 1
        draft = request.step([5], budget=2)
        assert (draft.tokens.tolist(), draft.base) == ([6, 7], len(TEXT) + 2)
        assert client.health().counters.hellos == 2


def test_a_request_that_was_absent_for_many_steps_drafts_as_before(local: ChannelClient) -> None:
    absent = local.open("absent", TEXT, history=False)
    present = local.open("present", TEXT, history=False)
    before = content(absent.draft(8))
    for _ in range(100):
        local.step({present: []})
    assert content(absent.draft(8)) == before


def test_a_reopened_id_knows_only_its_new_context(local: ChannelClient) -> None:
    old = local.open("r", TEXT, history=False)
    old.draft(2)
    old.close("aborted")
    new = local.open("r", [9, 1, 2, 3], history=False)
    assert new.draft(4).reason == Reason.NO_MATCH
    assert old.draft(4).reason == Reason.CLOSED
