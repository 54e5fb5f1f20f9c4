"""What Prometheus is told, over a real engine."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.observe.metrics import EngineCollector


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineSettings())
    yield engine
    engine.close()


def test_coverage_is_the_share_of_verify_steps_that_accepted_a_drafted_token(engine: Engine) -> None:
    registry = CollectorRegistry()
    registry.register(EngineCollector(engine.statistics))
    assert registry.get_sample_value("draftd_coverage") == 0
    with LocalClient(engine) as client:
        request = client.open("request", [1, 2, 3, 4, 1, 2], wait=True)
        assert request.draft(budget=1).tokens.tolist() == [3]
        request.commit([3])
        assert registry.get_sample_value("draftd_coverage") == 1
        assert request.draft(budget=1).tokens.tolist() == [4]
        request.commit([9])
    assert registry.get_sample_value("draftd_coverage") == 0.5
