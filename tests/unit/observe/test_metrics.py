"""What Prometheus is told, over a real engine."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.engine.verifiers import MOST_BELIEFS
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


def test_what_a_step_costs_is_told_by_verifier_and_tokens_of_the_latest_verifiers(engine: Engine) -> None:
    registry = CollectorRegistry()
    registry.register(EngineCollector(engine.statistics))
    for number in range(MOST_BELIEFS + 1):
        with LocalClient(engine, pacing="survival", verifier=f"gpu-{number}") as client:
            request = client.open("request", [1, 2, 3, 4])
            for _ in range(5):
                client.step({request: [9]}, step_seconds=0.004, step_width=4)
    told = [sample.labels for metric in registry.collect() for sample in metric.samples if "step_cost" in sample.name]
    assert {labels["verifier"] for labels in told} == {f"gpu-{number}" for number in range(1, MOST_BELIEFS + 1)}
    labels = {"verifier": "gpu-16", "tokens": "4"}
    assert registry.get_sample_value("draftd_step_cost_seconds", labels) == pytest.approx(0.004)
    assert registry.get_sample_value("draftd_explorations_total", {"verifier": "gpu-16"}) == 3
    assert registry.get_sample_value("draftd_paced_steps_total", {"pacing": "survival"}) == 5 * (MOST_BELIEFS + 1)
