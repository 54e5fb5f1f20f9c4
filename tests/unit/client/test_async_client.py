"""An AsyncClient raises for nothing that happens: closed, cancelled, or nobody there."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftd.client import AsyncClient, Reason
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import NO_TAIL
from tests.contract.serving import grpc_served, zmq_served

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
PATIENT = 30.0


@pytest.fixture
def engine() -> Engine:
    return Engine(EngineSettings())


@pytest.fixture(params=[zmq_served, grpc_served], ids=["zmq", "grpc"])
def endpoint(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[str]:
    with request.param(engine, tmp_path) as endpoint:
        yield endpoint


def silent_endpoints(directory: Path) -> list[str]:
    return [f"ipc://{directory}/nobody.sock", f"unix:{directory}/nobody.sock"]


async def turns_of_the_loop(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_close_gives_those_that_wait_an_empty_draft(tmp_path: Path) -> None:
    for endpoint in silent_endpoints(tmp_path):
        client = AsyncClient(endpoint, deadline=PATIENT)
        opening = asyncio.create_task(client.open("a", TEXT, wait=True))
        await turns_of_the_loop()
        await client.close()
        request = await opening
        assert (await request.draft()).reason == Reason.CLOSED


async def test_a_close_during_a_step_is_no_error_of_the_step(endpoint: str) -> None:
    client = AsyncClient(endpoint, deadline=PATIENT)
    request = await client.open("r", TEXT, wait=True)
    stepping = [asyncio.create_task(client.step({request: [4]})) for _ in range(3)]
    committing = asyncio.create_task(request.commit([5]))
    await asyncio.sleep(0)
    await client.close()
    for drafts in await asyncio.gather(*stepping):
        assert drafts[request].reason in (Reason.CLOSED, Reason.NOT_EMPTY)
    await committing
    assert (await request.step([6])).reason == Reason.CLOSED
    await request.close()
    assert (await client.check()).state == "closed"


async def test_a_cancelled_step_leaves_the_request_as_after_a_late_answer(endpoint: str, engine: Engine) -> None:
    async with AsyncClient(endpoint, deadline=PATIENT) as client:
        request = await client.open("r", TEXT, wait=True)
        assert len(await request.draft(2)) == 2
        assert request.mirror.tail_base != NO_TAIL
        step = asyncio.create_task(request.step([4], budget=2))
        await asyncio.sleep(0)  # it is sent
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert request.mirror.tail_base == NO_TAIL, "nobody saw the draft of that step"
        draft = await request.step([5], budget=2)
        while not len(draft):  # the cancelled step may have got lost on its way out: then this one is told NEED_SYNC
            draft = await request.draft(budget=2)
        assert (draft.base, draft.tokens.tolist()) == (len(TEXT) + 2, [6, 7])
        assert engine.statistics().stale_tails == 0


@pytest.mark.parametrize("endpoint", ["tcp://nowhere", "tcp://127.0.0.1:http"])
def test_an_unusable_endpoint_is_an_error_of_the_constructor(endpoint: str) -> None:
    with pytest.raises(ValueError, match=f"endpoint '{endpoint}' cannot be used"):
        AsyncClient(endpoint)


def test_a_client_may_be_made_before_its_loop_runs(endpoint: str) -> None:
    client = AsyncClient(endpoint, deadline=PATIENT)

    async def use() -> list[int]:
        async with client:
            request = await client.open("r", TEXT, wait=True)
            return (await request.draft(2)).tokens.tolist()

    assert asyncio.run(use()) == [4, 5]


async def test_a_client_that_was_never_used_closes(tmp_path: Path) -> None:
    for endpoint in silent_endpoints(tmp_path):
        await AsyncClient(endpoint).close()


async def test_an_engine_that_does_not_wait_gets_what_came_before(endpoint: str) -> None:
    async with AsyncClient(endpoint, deadline=PATIENT) as client:
        request = await client.open("r", TEXT, wait=True, shape="chain")
        assert (await client.step_ahead({request: [4]}, max_nodes=3))[request].reason == Reason.LATE
        await client.check(PATIENT)  # answered after the step
        draft = (await client.step_ahead({request: [5]}, max_nodes=3))[request]
        assert (draft.tokens.tolist(), draft.base) == ([6, 7], len(TEXT) + 2)
    assert (await client.step_ahead({request: []}))[request].reason == Reason.CLOSED


async def test_each_request_may_want_another_number_of_nodes(endpoint: str) -> None:
    async with AsyncClient(endpoint, deadline=PATIENT) as client:
        first, second, third = [await client.open(name, TEXT, wait=True, shape="chain") for name in "abc"]
        drafts = await client.step({first: [], second: [], third: []}, max_nodes={first: 1, second: 3})
    assert [len(draft) for draft in drafts.values()] == [1, 3, 0]
