"""What the engine keeps of verifiers that greet it: once, again, by the thousand, with long names."""

import tracemalloc
from collections.abc import Iterator
from contextlib import closing

import pytest

from draftd import wire
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.engine.verifiers import LONGEST_NAME, MOST_BELIEFS, MOST_VERIFIERS
from draftd.pacing.cost_table import MOST_SIZES, CostTable
from draftd.wire import Frame, Hello, Pacing, Status, StepBatch
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    with closing(Engine(EngineSettings(), clock=clock)) as engine:
        yield engine


def answer(engine: Engine, frame: Frame) -> Frame:
    return Frame.FromString(engine.handle(frame.SerializeToString()).reply)


def greet(engine: Engine, incarnation: int, name: str, **said: object) -> None:
    hello = Hello(protocol=1, incarnation=incarnation, verifier=name, **said)  # type: ignore[arg-type]
    assert answer(engine, Frame(hello=hello)).WhichOneof("body") == "hello_reply"


def is_known(engine: Engine, incarnation: int) -> bool:
    """Says so by a step, after which it is."""
    error = answer(engine, Frame(step=StepBatch(verifier=incarnation, step=1))).error
    return error.status != Status.NEED_HELLO


def learn(engine: Engine, incarnation: int) -> None:
    for step in range(1, 5):
        batch = StepBatch(verifier=incarnation, step=step, step_micros=5000, step_width=8)
        assert answer(engine, Frame(step=batch)).WhichOneof("body") == "reply"


def test_a_verifier_that_says_the_same_again_goes_on_with_what_was_learned(engine: Engine) -> None:
    greet(engine, 1, "gpu-7", pacing=Pacing.SURVIVAL)
    learn(engine, 1)
    learned = engine.statistics().step_cost
    assert learned
    greet(engine, 1, "gpu-7", pacing=Pacing.SURVIVAL)
    assert engine.statistics().step_cost == learned


@pytest.mark.parametrize(
    "other", [{"pacing": Pacing.SURVIVAL, "graph_sizes": b"\1\0\0\0"}, {"pacing": Pacing.SCHEDULE}, {}]
)
def test_one_that_says_something_else_begins_anew(engine: Engine, other: dict[str, object]) -> None:
    greet(engine, 1, "gpu-7", pacing=Pacing.SURVIVAL)
    learn(engine, 1)
    greet(engine, 1, "gpu-7", **other)
    assert not engine.statistics().step_cost


def test_another_life_begins_anew(engine: Engine) -> None:
    greet(engine, 1, "gpu-7", pacing=Pacing.SURVIVAL)
    learn(engine, 1)
    greet(engine, 2, "gpu-7", pacing=Pacing.SURVIVAL)
    assert not engine.statistics().step_cost


def test_of_too_many_verifiers_the_longest_silent_goes(engine: Engine, clock: Clock) -> None:
    for incarnation in range(1, MOST_VERIFIERS + 1):
        clock.now += 1.0
        greet(engine, incarnation, "many")
    assert is_known(engine, 1)  # and so it was heard last
    greet(engine, MOST_VERIFIERS + 1, "one more")
    assert [is_known(engine, incarnation) for incarnation in (1, 2, 3, MOST_VERIFIERS + 1)] == [True, False, True, True]


def test_greetings_with_large_tables_take_what_their_columns_take(engine: Engine) -> None:
    sizes = range(1, MOST_SIZES + 1)
    cost: wire.CostTable = CostTable(sizes, [float(size) for size in sizes]).message()
    greet(engine, 1, "first", pacing=Pacing.SURVIVAL, cost=cost)
    tracemalloc.start()
    try:
        for incarnation in range(2, 12):
            greet(engine, incarnation, "more", pacing=Pacing.SURVIVAL, cost=cost)
        assert tracemalloc.get_traced_memory()[0] < 10 * 60_000
    finally:
        tracemalloc.stop()


def test_a_long_name_is_cut(engine: Engine) -> None:
    greet(engine, 1, "x" * 1_000_000, pacing=Pacing.SCHEDULE)
    assert {name for name, _ in engine.statistics().scheduled_nodes} == {"x" * LONGEST_NAME}


def test_a_name_that_was_greeted_again_is_among_the_latest(engine: Engine) -> None:
    for incarnation, name in enumerate(["first", *map(str, range(MOST_BELIEFS)), "first"], 1):
        greet(engine, incarnation, name, pacing=Pacing.SCHEDULE)
    names = {name for name, _ in engine.statistics().scheduled_nodes}
    assert names == {"first", *map(str, range(1, MOST_BELIEFS))}
