"""What a schedule is told of the drafts of a step, and what tells it nothing."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from draftd.client import Client
from draftd.client.draft import Draft
from draftd.client.local import LocalClient
from draftd.client.request import Request
from draftd.config import EngineSettings, PacingSettings
from draftd.engine import Answer, Engine
from tests.contract.serving import ring_served

TEXT = [*range(100)] * 9  # seen often enough that every next token is near certain


class Sheddable(Engine):
    """An engine that is behind as long as a test says so."""

    behind = False

    def handle(self, frame: bytes, *, shed: bool = False) -> Answer:
        return super().handle(frame, shed=shed or self.behind)


@pytest.fixture
def engine() -> Iterator[Sheddable]:
    with closing(Sheddable(EngineSettings())) as engine:
        yield engine


@pytest.fixture
def client(engine: Sheddable) -> Iterator[LocalClient]:
    with LocalClient(engine, pacing="schedule", verifier="gpu-7") as client:
        yield client


def slot(engine: Engine, size: int = 1) -> int:
    return engine.statistics().scheduled_nodes["gpu-7", size]


def accept_all(request: Request, draft: Draft) -> Draft:
    """A step in which the whole draft was right."""
    return request.step(TEXT[request.length % 100 :][: len(draft) + 1])


def accept_none(request: Request) -> Draft:
    return request.step([TEXT[request.length % 100]])


def learned_7(engine: Engine, client: LocalClient) -> tuple[Request, Draft]:
    request = client.open("r", TEXT[:810], wait=True, shape="chain")
    draft = request.draft()
    for _ in range(40):
        draft = accept_all(request, draft)
    assert slot(engine) == 7
    return request, draft


def test_a_step_that_was_shed_tells_nothing_of_drafts(engine: Sheddable, client: LocalClient) -> None:
    request, draft = learned_7(engine, client)
    engine.behind = True
    for _ in range(40):
        draft = accept_all(request, draft)
    engine.behind = False
    accept_all(request, draft)
    assert slot(engine) == 7


def test_first_tokens_come_from_prefill(engine: Sheddable, client: LocalClient) -> None:
    for number in range(60):
        request = client.open(f"r{number}", TEXT[:810], wait=True, shape="chain")
        draft = accept_none(request)
        for _ in range(2):
            draft = accept_all(request, draft)
        request.close()
    assert slot(engine) == 7


@pytest.mark.parametrize("verb", ["step", "step_ahead"])
def test_an_engine_that_steps_ahead_climbs_as_one_that_waits(engine: Sheddable, tmp_path: Path, verb: str) -> None:
    with (
        ring_served(engine, tmp_path) as endpoint,
        Client(endpoint, deadline=30.0, pacing="schedule", verifier="gpu-7") as client,
    ):
        request = client.open("r", TEXT[:810], wait=True, shape="chain")
        step = {"step": client.step, "step_ahead": client.step_ahead}[verb]
        draft = step({request: ()})[request]
        for _ in range(40):
            client.check(30.0)  # what was asked ahead has come
            draft = step({request: TEXT[request.length % 100 :][: len(draft) + 1]})[request]
        client.check(30.0)
    assert slot(engine) == 7
    assert engine.statistics().stale_tails == 0


def test_what_the_text_left_before_it_could_be_verified_makes_drafts_shorter(
    engine: Sheddable, client: LocalClient
) -> None:
    request, _ = learned_7(engine, client)
    for _ in range(60):
        client.step_ahead({request: [37 * request.length % 100]})
    assert slot(engine) == 1
    for _ in range(60):  # a draft of one is used up by the token that comes meanwhile
        draft = client.step_ahead({request: TEXT[request.length % 100 :][:1]})[request]
    assert slot(engine) > 1
    assert len(draft) > 0


def test_a_tail_before_the_last_two_tells_nothing(engine: Sheddable, client: LocalClient) -> None:
    request, _ = learned_7(engine, client)
    for _ in range(40):
        client.step_ahead({request: TEXT[request.length % 100 :][:1]})
        for _ in range(2):  # the first one names what the step gave, of the step before
            client.commit({request: TEXT[request.length % 100 :][:1]})
    client.check(30.0)
    assert engine.statistics().stale_tails > 30
    assert slot(engine) == 7


def test_requests_that_want_no_drafts_tell_nothing(engine: Sheddable, client: LocalClient) -> None:
    request, draft = learned_7(engine, client)
    client.step({request: TEXT[request.length % 100 :][: len(draft) + 1]}, max_nodes=0)
    for _ in range(40):
        client.step({request: [TEXT[request.length % 100]]}, max_nodes=0)
    assert slot(engine) == 7


def test_a_wanted_draft_that_found_nothing_is_one_without_an_accepted_node(
    engine: Sheddable, client: LocalClient
) -> None:
    request = client.open("r", [1, 2, 3], wait=True, shape="chain")
    request.draft()
    for token in range(10, 40):
        assert len(request.step([token])) == 0
    assert slot(engine) == 1


def test_a_slot_that_is_off_tries_again(tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    file.write_text('{"1": {"candidate_steps": [0, 2], "warmup_batches": 0, "update_interval": 2}}')
    with (
        closing(Engine(EngineSettings(), pacing=PacingSettings(schedule=file))) as engine,
        LocalClient(engine, pacing="schedule", verifier="gpu-7") as client,
    ):
        request = client.open("r", TEXT[:810], wait=True, shape="chain")
        request.draft()
        lengths = []
        for _ in range(60):
            request.step([37 * request.length % 100])  # never what was drafted
            lengths.append(slot(engine))
        off = lengths.index(0)
        assert 2 in lengths[off:]
