"""Several verifiers at one drafter, with colliding ids, across a crash: none reads another's text."""

import threading
from collections.abc import Callable

import pytest

from draftd.client import Client, Namespace, Request
from tests.faults.process import ServerProcess, until

TENANTS = ["acme", "globex", "initech", "umbrella"]
REQUESTS = 6
STEPS = 40
PATIENT = 20.0


def own_ids(tenant: str) -> range:
    """The token ids that only this tenant uses."""
    start = 1000 * (1 + TENANTS.index(tenant))
    return range(start, start + 7)


class Verifier(threading.Thread):
    """Steps its requests, whose text goes round its own ids, and notes every token that it was given."""

    def __init__(self, endpoint: str, tenant: str) -> None:
        super().__init__()
        self.drafted: set[int] = set()
        self.accepted = 0
        self._endpoint = endpoint
        self._tenant = tenant

    def run(self) -> None:
        ids = list(own_ids(self._tenant))
        with Client(self._endpoint, Namespace(tenant=self._tenant), verifier=self._tenant, deadline=PATIENT) as client:
            requests = [client.open(f"req-{number}", ids, share="all") for number in range(REQUESTS)]
            for step in range(STEPS):
                following = ids[step % len(ids)]
                self._step(client, requests, following)
                if step % 10 == 9:
                    requests[0].close()
                    requests[0] = client.open("req-0", ids[: 1 + step % len(ids)], share="all")
                    requests[0].commit(ids[1 + step % len(ids) :] + ids[: 1 + step % len(ids)])

    def _step(self, client: Client, requests: list[Request], following: int) -> None:
        for draft in client.step({request: [following] for request in requests}, max_nodes=4).values():
            tokens = draft.tokens.tolist()
            self.drafted.update(tokens)
            self.accepted += following + 1 in tokens


def run_all(endpoints: Callable[[str], str]) -> list[Verifier]:
    verifiers = [Verifier(endpoints(tenant), tenant) for tenant in TENANTS]
    for verifier in verifiers:
        verifier.start()
    for verifier in verifiers:
        verifier.join()
    return verifiers


@pytest.mark.parametrize("ways", [["ring"], ["zmq"], ["ring", "zmq", "grpc"]], ids=" and ".join)
def test_verifiers_at_once_get_drafts_from_their_own_text_alone(server: ServerProcess, ways: list[str]) -> None:
    endpoints = {tenant: getattr(server, ways[number % len(ways)]) for number, tenant in enumerate(TENANTS)}
    for verifier, tenant in zip(run_all(endpoints.__getitem__), TENANTS, strict=True):
        assert verifier.accepted > STEPS * REQUESTS / 2
        assert verifier.drafted <= set(own_ids(tenant))


def test_a_restart_does_not_mix_tenants_whose_handles_are_the_same(server: ServerProcess) -> None:
    clients = [Client(server.ring, Namespace(tenant=tenant), deadline=PATIENT) for tenant in TENANTS]
    requests = []
    for client, tenant in zip(clients, TENANTS, strict=True):
        ids = list(own_ids(tenant))
        requests.append(client.open("req", ids + ids[:2], wait=True))
    assert {request.mirror.handle for request in requests} == {1}
    server.kill()
    server.start()
    for request, tenant in zip(reversed(requests), reversed(TENANTS), strict=True):
        until(lambda request=request: len(request.draft(8)))  # type: ignore[misc]
        assert set(request.draft(8).tokens.tolist()) <= set(own_ids(tenant))
    for client in clients:
        client.close()


def test_threads_may_share_a_client(server: ServerProcess) -> None:
    with Client(server.ring, deadline=PATIENT) as client:
        requests = [client.open(f"r{number}", [number, 90, number], history=False) for number in range(8)]
        drafted: dict[int, list[int]] = {}

        def step(number: int) -> None:
            for _ in range(30):
                drafted[number] = requests[number].step([90, number], budget=1).tokens.tolist()

        threads = [threading.Thread(target=step, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert drafted == {number: [90] for number in range(8)}
        assert client.health().counters.row_errors == 0
