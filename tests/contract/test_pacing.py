"""Who decides how many nodes a step gets: real clients and frames against a real engine."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from draftd import wire
from draftd.client import AsyncClient, CostTable, Reason, Status
from draftd.client.local import LocalClient
from draftd.client.pacing import PacingOptions, StepOptions
from draftd.client.request import Request
from draftd.config import EngineSettings, PacingSettings
from draftd.engine import Engine
from draftd.pacing.cost_profile import FIRST_WIDTH
from draftd.wire import Frame, Hello, Pacing, StepBatch
from tests.contract.frames import i32, sync_frame, u32
from tests.contract.serving import zmq_served

TEXT = [*range(100)] * 9  # seen often enough that every next token is near certain
FLAT = CostTable((1, 1000), (100.0, 101.0))
STEEP = CostTable((1, 2, 1000), (1.0, 100.0, 1000.0))


@pytest.fixture
def engine() -> Iterator[Engine]:
    with closing(Engine(EngineSettings())) as engine:
        yield engine


def opened(client: LocalClient, requests: int) -> list[Request]:
    return [client.open(f"r{number}", TEXT[: 810 + number], wait=True) for number in range(requests)]


def nodes(engine: Engine, options: PacingOptions, load: StepOptions, requests: int = 1) -> list[int]:
    """Of each request's first draft."""
    with LocalClient(engine, **options) as client:
        commits = dict.fromkeys(opened(client, requests), ())
        return [len(draft) for draft in client.step(commits, max_nodes=20, **load).values()]


def test_as_many_nodes_as_pay_for_themselves(engine: Engine) -> None:
    assert nodes(engine, {"pacing": "survival", "cost": FLAT}, {}) == [20]
    assert nodes(engine, {"pacing": "survival", "cost": STEEP}, {}) == [0]


def test_the_step_gets_no_longer_than_the_last_entry(engine: Engine) -> None:
    cost = CostTable((1, 7), (100.0, 101.0))
    assert sum(nodes(engine, {"pacing": "survival", "cost": cost}, {}, requests=3)) == 4
    assert sum(nodes(engine, {"pacing": "survival", "cost": cost}, {"other_tokens": 2}, requests=3)) == 2
    assert sum(nodes(engine, {"pacing": "survival", "cost": cost}, {"other_tokens": 5}, requests=3)) == 0


def test_a_step_may_state_another_cost_which_holds_from_then_on(engine: Engine) -> None:
    with LocalClient(engine, pacing="survival", cost=FLAT) as client:
        (request,) = opened(client, 1)
        drafts = [client.step({request: ()}, **load)[request] for load in ({}, StepOptions(cost=STEEP), {})]
    assert [len(draft) for draft in drafts] == [16, 0, 0]
    assert drafts[1].reason == Reason.NOT_WORTH_IT


def test_widths_are_the_same_for_all_rows(engine: Engine) -> None:
    assert nodes(engine, {"pacing": "survival", "cost": FLAT}, {"widths": [1, 5, 9]}, requests=3) == [9, 9, 9]


def test_what_is_drafted_as_asked_is_not_weighed(engine: Engine) -> None:
    assert nodes(engine, {"cost": STEEP}, {"cost": STEEP, "widths": [1]}) == [20]


def test_nothing_known_is_a_few_nodes(engine: Engine) -> None:
    assert nodes(engine, {"pacing": "survival"}, {}) == [FIRST_WIDTH - 1]


@pytest.mark.parametrize(("micros_a_token", "drafted", "explorations"), [(0, 20, 9), (5000, 0, 15)])
def test_what_steps_cost_is_learned_from_them(
    engine: Engine, micros_a_token: int, drafted: int, explorations: int
) -> None:
    with LocalClient(engine, pacing="survival", verifier="gpu-7") as client:
        (request,) = opened(client, 1)
        load: StepOptions = {}
        for _ in range(60):
            draft = client.step({request: TEXT[request.length % 100 :][:1]}, max_nodes=20, **load)[request]
            width = 1 + len(draft)
            load = StepOptions(step_seconds=(5000 + micros_a_token * (width - 1)) / 1e6, step_width=width)
        assert len(draft) == drafted
    statistics = engine.statistics()
    assert statistics.step_cost["gpu-7", 8] == pytest.approx((5000 + 7 * micros_a_token) / 1e6)
    assert statistics.explorations["gpu-7"] == explorations  # three for each size on the way
    assert statistics.paced_steps["survival"] == 60
    assert statistics.paced_nodes["survival"] > 60


def test_a_schedule_goes_by_the_batch_size(engine: Engine) -> None:
    assert nodes(engine, {"pacing": "schedule"}, {}) == [3]
    assert set(nodes(engine, {"pacing": "schedule"}, {}, requests=40)) == {1}
    assert set(nodes(engine, {"pacing": "schedule", "graph_sizes": [1, 64]}, {}, requests=40)) == {0}
    assert engine.statistics().empty_tails["NOT_WORTH_IT"] >= 40
    assert engine.statistics().empty_tails["NOT_ASKED"] == 0


def test_a_schedule_learns_what_was_accepted(engine: Engine) -> None:
    with LocalClient(engine, pacing="schedule", verifier="gpu-7") as client:
        (request,) = opened(client, 1)
        draft = request.draft()
        assert len(draft) == 3
        for _ in range(60):
            accepted = draft.tokens.tolist()
            draft = request.step([*accepted, TEXT[(request.length + len(accepted)) % 100]])
        assert len(draft) == 7
    assert engine.statistics().scheduled_nodes["gpu-7", 1] == 7


@pytest.mark.parametrize("mode", ["as_asked", "survival", "schedule"])
def test_who_says_nothing_is_paced_as_configured(mode: str) -> None:
    with closing(Engine(EngineSettings(), pacing=PacingSettings.model_validate({"mode": mode}))) as engine:
        expected = {"as_asked": 20, "survival": FIRST_WIDTH - 1, "schedule": 3}[mode]
        assert nodes(engine, {}, {}) == [expected]
        assert nodes(engine, {"pacing": "as_asked"}, {}) == [20]


async def test_the_async_client_says_the_same(engine: Engine, tmp_path: object) -> None:
    with zmq_served(engine, tmp_path) as endpoint:  # type: ignore[arg-type]
        async with AsyncClient(endpoint, deadline=30.0, pacing="survival", cost=STEEP) as client:
            request = await client.open("r", TEXT[:810], wait=True)
            drafts = [await client.step({request: ()}, **load) for load in ({}, StepOptions(cost=FLAT))]
    assert [len(draft[request]) for draft in drafts] == [0, 16]


def test_a_step_of_several_messages_is_one_step() -> None:
    """Rows and nodes of the other messages are tokens of the step, too."""
    cost = CostTable((4, 10), (100.0, 101.0))
    with (
        closing(Engine(EngineSettings(max_rows=2))) as engine,
        LocalClient(engine, pacing="survival", cost=cost) as client,
    ):
        requests = opened(client, 4)
        client.check()
        drafts = client.step(dict.fromkeys(requests, ()))
        assert sum(map(len, drafts.values())) == 6


def test_tokens_beside_those_of_the_rows_may_be_as_many_as_the_field_holds(engine: Engine) -> None:
    assert nodes(engine, {"pacing": "survival"}, {"other_tokens": 2**32 - 2}) == [0]
    assert engine.statistics().frame_errors["INVALID_ARGUMENT"] == 0


@pytest.mark.parametrize("pacing", [Pacing.SURVIVAL, Pacing.SCHEDULE])
def test_a_step_whose_columns_dont_fit_changes_nothing(engine: Engine, pacing: Pacing) -> None:
    with LocalClient(engine, pacing=pacing.name.lower(), cost=FLAT) as client:  # type: ignore[arg-type]
        (request,) = opened(client, 1)
        drafted = len(client.step({request: ()}, max_nodes=20)[request])
        step = StepBatch(verifier=client._core._incarnation, step=9, cost=STEEP.message())
        step.commit.request, step.commit.max_nodes = u32([1]), b"\1"
        error = error_of(engine, Frame(step=step))
        assert error.status == Status.MALFORMED
        assert error.message.startswith("commit: column max_nodes: 1 bytes are no whole number")
        assert len(client.step({request: ()}, max_nodes=20)[request]) == drafted > 0


def error_of(engine: Engine, frame: Frame) -> wire.Error:
    return Frame.FromString(engine.handle(frame.SerializeToString()).reply).error


@pytest.mark.parametrize(
    ("hello", "message"),
    [
        (Hello(cost=wire.CostTable()), "hello: cost: a cost table of 0 entries"),
        (Hello(cost=wire.CostTable(tokens=u32([1, 2]), micros=b"\0\0\0")), "hello: cost: micros: 3 bytes"),
        (Hello(graph_sizes=u32([4, 2])), "hello: graph_sizes: [4, 2] do not ascend from 1 on"),
        (Hello(cost=wire.CostTable(tokens=u32(range(1, 10_001)))), "hello: cost: a cost table of 10000 tokens"),
        (Hello(graph_sizes=u32(range(1, 10_001))), "hello: graph_sizes: 10000 of them; at most 4096"),
        (Hello(graph_sizes=b"\0"), "hello: graph_sizes: 1 bytes are no column"),
        (Hello(pacing=7), "hello: pacing: 7 is no Pacing"),  # type: ignore[arg-type]
    ],
)
def test_a_greeting_that_cant_be_meant_is_refused(engine: Engine, hello: Hello, message: str) -> None:
    hello.protocol, hello.incarnation = 1, 5
    error = error_of(engine, Frame(hello=hello))
    assert error.status == Status.INVALID_ARGUMENT
    assert error.message.startswith(message)
    assert error_of(engine, Frame(step=StepBatch(verifier=5, step=1))).status == Status.NEED_HELLO


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (StepBatch(cost=wire.CostTable(tokens=u32([1]), micros=u32([0]))), "cost: entry 0: micros is 0.0"),
        (StepBatch(widths=b"\2\0\1\0"), "widths: [2, 1] do not ascend"),
        (StepBatch(widths=b"\0\0\1\0"), "widths: [0, 1] do not ascend"),
        (StepBatch(widths=b"\1"), "widths: 1 bytes are no column"),
    ],
)
def test_a_step_that_cant_be_meant_is_refused_and_changes_nothing(
    engine: Engine, step: StepBatch, message: str
) -> None:
    hello = Hello(protocol=1, incarnation=5, verifier="by hand", pacing=Pacing.SURVIVAL)
    engine.handle(Frame(hello=hello).SerializeToString())
    engine.handle(sync_frame(5, 1, TEXT[:810]))
    step.verifier, step.step = 5, 2
    step.commit.request, step.commit.epoch, step.commit.start = u32([1]), u32([1]), u32([810])
    step.commit.token_end, step.commit.tokens = u32([1]), i32([10])
    step.commit.tail_base, step.commit.verified, step.commit.max_nodes = u32([2**32 - 1]), i32([-1]), b"\5\0"
    error = error_of(engine, Frame(step=step))
    assert error.status == Status.INVALID_ARGUMENT
    assert error.message.startswith(message)
    step.ClearField("cost")
    step.ClearField("widths")
    reply = Frame.FromString(engine.handle(Frame(step=step).SerializeToString()).reply).reply
    assert list(reply.tail.base) == list(u32([811]))
