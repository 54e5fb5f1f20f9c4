"""A drafter's limits, over every channel: what passes them is the trouble of one request at most."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from draftd.client import AsyncClient, Client, Reason, Status
from draftd.client.client import ChannelClient
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine
from tests.contract.serving import MAX_FRAME_BYTES, grpc_served, ring_served, zmq_served

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
TOO_LONG = [*range(MAX_FRAME_BYTES // 4), *TEXT]
MAX_ROWS = 4
PATIENT = 30.0
SERVED, REFUSED = (Reason.NOT_EMPTY, Status.OK), (Reason.REFUSED, Status.LIMIT_EXCEEDED)


@pytest.fixture
def engine() -> Engine:
    return Engine(EngineSettings(max_frame_bytes=MAX_FRAME_BYTES, max_rows=MAX_ROWS))


@pytest.fixture(params=["local", "ring", "zmq", "grpc"])
def client(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[ChannelClient]:
    if request.param == "local":
        yield LocalClient(engine, deadline=PATIENT)
        return
    served = {"ring": ring_served, "zmq": zmq_served, "grpc": grpc_served}[request.param]
    with served(engine, tmp_path) as endpoint, Client(endpoint, deadline=PATIENT) as client:
        yield client


@pytest.mark.parametrize("wait", [False, True])
def test_a_request_that_no_frame_takes_is_refused_alone(client: ChannelClient, wait: bool) -> None:
    good, big = client.open("good", TEXT, wait=wait), client.open("big", TOO_LONG, wait=wait)
    drafts = client.step({good: [4], big: [4]}, max_nodes=1)
    assert [draft.reason for draft in drafts.values()] == [Reason.NOT_EMPTY, Reason.REFUSED]
    for token in (5, 6):  # by now the drafter has said what its limits are
        drafts = client.step({good: [token], big: [token]}, max_nodes=1)
        assert [(draft.reason, draft.status) for draft in drafts.values()] == [SERVED, REFUSED]
    assert "request 'big': LIMIT_EXCEEDED" in client.health().last_error
    assert client.health().counters.late == 0
    big.close()
    assert good.step([7], budget=1).tokens.tolist() == [8]


def test_more_rows_than_the_drafter_takes_get_their_drafts_all_the_same(client: ChannelClient) -> None:
    requests = [client.open(f"r{number}", TEXT, history=False) for number in range(3 * MAX_ROWS + 1)]
    drafts = client.step({request: [4] for request in requests}, max_nodes=2)
    assert list(drafts) == requests
    assert [draft.tokens.tolist() for draft in drafts.values()] == [[5, 6]] * len(requests)
    drafts = client.step({request: [5] for request in requests}, budget=5, max_nodes=2)
    assert sum(map(len, drafts.values())) == 5
    client.commit({request: [6] for request in requests})
    drafts = client.step({request: [] for request in requests}, max_nodes=1)
    assert [draft.tokens.tolist() for draft in drafts.values()] == [[7]] * len(requests)
    assert client.health().counters.row_errors == 0


async def test_an_async_client_keeps_to_the_limits_too(engine: Engine, tmp_path: Path) -> None:
    with zmq_served(engine, tmp_path) as endpoint:
        async with AsyncClient(endpoint, deadline=PATIENT) as client:
            good = [await client.open(f"r{number}", TEXT) for number in range(2 * MAX_ROWS)]
            big = await client.open("big", TOO_LONG, wait=True)
            drafts = await client.step({request: [4] for request in [big, *good]}, max_nodes=1)
            outcomes = [(draft.reason, draft.status) for draft in drafts.values()]
            assert outcomes == [REFUSED, *[SERVED] * len(good)]
