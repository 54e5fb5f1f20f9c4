"""Every option of the engine: two values give two behaviours."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine, LimitExceeded
from draftd.wire import Reason

Start = Callable[..., Engine]
MEBIBYTE = 1 << 20


@pytest.fixture
def start() -> Iterator[Start]:
    """Makes engines with the given settings."""
    engines: list[Engine] = []

    def with_settings(**settings: float) -> Engine:
        engines.append(Engine(EngineSettings.model_validate(settings), clock=Clock.now))
        return engines[-1]

    yield with_settings
    for engine in engines:
        engine.close()


class Clock:
    """Stands still until it is set, in seconds."""

    seconds = 0.0

    @classmethod
    def now(cls) -> float:
        return cls.seconds


@pytest.mark.parametrize("in_flight", [True, False])
def test_in_flight(in_flight: bool) -> None:
    engine = Engine(EngineSettings(), in_flight=in_flight)
    with LocalClient(engine) as client:
        running = client.open("running", [1], wait=True)
        running.commit(range(10, 30))
        sibling = client.open("sibling", [2, 10, 11, 12], wait=True)
        assert (sibling.draft(budget=1).tokens.tolist() == [13]) == in_flight
    engine.close()


def random_tokens(count: int) -> list[int]:
    ids: list[int] = np.random.default_rng(7).integers(0, 100_000, count).tolist()
    return ids


@pytest.mark.parametrize(("limit", "asked", "drafted"), [(12, 5000, 12), (16, 5000, 16), (1024, 12, 12)])
def test_max_nodes(limit: int, asked: int, drafted: int, start: Start) -> None:
    with LocalClient(start(max_nodes=limit)) as client:
        text = [*range(100)] * 9  # seen often enough that every next token is near certain
        draft = client.open("request", text[:810], shape="chain", wait=True).draft(budget=asked)
        assert len(draft) == drafted


@pytest.mark.parametrize(("limit", "messages"), [(1, 2), (2, 1)])
def test_max_rows(limit: int, messages: int, start: Start) -> None:
    engine = start(max_rows=limit)
    with LocalClient(engine) as client:
        requests = [client.open(name, [1, 2, 3, 1, 2], wait=True) for name in ("a", "b")]
        client.step({request: [] for request in requests})
    assert sum(engine.statistics().draft_latency_counts) == messages


@pytest.mark.parametrize(("limit", "reason"), [(64 << 10, Reason.REFUSED), (1 << 20, Reason.NOT_EMPTY)])
def test_max_frame_bytes(limit: int, reason: Reason, start: Start) -> None:
    with LocalClient(start(max_frame_bytes=limit), deadline=1.0) as client:
        prompt = [*random_tokens(20_000), 1, 2, 3, 1, 2]
        assert client.open("request", prompt, wait=True).draft(budget=1).reason == reason


@pytest.mark.parametrize(("seconds", "dropped"), [(10.0, 1), (100.0, 0)])
def test_session_ttl(seconds: float, dropped: int, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = start(session_ttl=seconds)
    with LocalClient(engine) as client:
        client.open("request", [1, 2], wait=True)
        monkeypatch.setattr(Clock, "seconds", 50.0)
        assert engine.expire() == dropped
        assert engine.statistics().sessions == 1 - dropped


@pytest.mark.parametrize(("limit", "evicted"), [(2 * MEBIBYTE, True), (256 * MEBIBYTE, False)])
def test_memory_limit(limit: int, evicted: bool, start: Start) -> None:
    engine = start(memory_limit=limit, history_limit=MEBIBYTE)
    with LocalClient(engine) as client:
        for number in range(4):
            client.open(f"request-{number}", random_tokens(30_000), wait=True)
        engine.expire()
        statistics = engine.statistics()
        assert (statistics.evicted_sessions > 0) == evicted
        assert sum(statistics.index_bytes.values()) <= limit


@pytest.mark.parametrize(("limit", "kept"), [(MEBIBYTE, False), (256 * MEBIBYTE, True)])
def test_history_limit(limit: int, kept: bool, start: Start) -> None:
    engine = start(history_limit=limit)
    with LocalClient(engine) as client:
        for number in range(10):
            request = client.open(f"request-{number}", [1])
            request.commit(random_tokens(10_000))
            request.close("finished")
        client.open("last", [1], wait=True)
        statistics = engine.statistics()
        assert statistics.index_bytes["history"] <= limit
        assert (statistics.index_tokens["history"] == 100_000) == kept


def test_max_corpora(start: Start) -> None:
    for limit in (1, 2):
        engine = start(max_corpora=limit)
        for number in range(limit):
            engine.publish_corpus(Namespace(), str(number), [])
        with pytest.raises(LimitExceeded, match=f"has {limit} corpora"):
            engine.publish_corpus(Namespace(), "one more", [])


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(threads: int, start: Start) -> None:
    before = set(Path("/proc/self/task").iterdir())
    start(threads=threads)
    indexing = 1
    assert len(set(Path("/proc/self/task").iterdir()) - before) == indexing + threads - 1


def test_every_option_has_a_test_here() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert set(EngineSettings.model_fields) <= tested
