"""Health, readiness, version and metrics."""

import re

from prometheus_client.parser import text_string_to_metric_families

from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.observe.metrics import ACCEPTANCE, COUNTERS, COVERAGE, GAUGES, LATENCY
from tests.unit.http.conftest import Endpoint, Start

Samples = dict[tuple[str, str], float]  # by name and the value of its label


async def samples(endpoint: Endpoint) -> Samples:
    response = await endpoint.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(response.text)
    return {
        (sample.name, "".join(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


async def test_readyz_waits_for_every_part(start: Start) -> None:
    endpoint = start(waiting_for=("corpora",))
    response = await endpoint.http.get("/readyz")
    assert (response.status_code, response.json()) == (503, {"ready": False, "waiting_for": ["corpora"]})
    endpoint.readiness.up("corpora")
    response = await endpoint.http.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"ready": True, "waiting_for": []})
    endpoint.readiness.stopping()
    assert (await endpoint.http.get("/readyz")).status_code == 503


async def test_healthz_answers_before_it_is_ready(start: Start) -> None:
    assert (await start(waiting_for=("corpora",)).http.get("/healthz")).json() == {"status": "ok"}


async def test_version(endpoint: Endpoint) -> None:
    fields = (await endpoint.http.get("/version")).json()
    assert re.fullmatch(r"\d+\.\d+\.\d+", fields["version"])
    assert (fields["protocol"], int(fields["incarnation"], 16)) == (1, endpoint.engine.incarnation)


async def test_every_documented_metric_is_there(endpoint: Endpoint) -> None:
    text = (await endpoint.http.get("/metrics")).text
    for figure in (*COUNTERS, *GAUGES, COVERAGE, LATENCY, ACCEPTANCE):
        assert f"# HELP {figure.name}" in text


async def test_the_counters_of_a_verified_draft(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3, 4, 5, 6]] * 9)
    with LocalClient(endpoint.engine, Namespace()) as client:
        request = client.open("request", [1, 2], shape="chain", stop_ids=[9], wait=True)
        assert request.draft(budget=3).tokens.tolist() == [3, 4, 5]
        # Of three drafted the engine verified two, and accepted the first.
        request.commit([3, 9], verified=2)
        assert len(request.draft(budget=3)) == 0
        request.close("finished")
        client.open("another", [7], wait=True)  # the close before it is then indexed
    seen = await samples(endpoint)
    assert seen["draftd_verify_steps_total", ""] == 1
    assert seen["draftd_covered_steps_total", ""] == 1
    assert seen["draftd_spec_decode_num_drafts_total", ""] == 1
    assert seen["draftd_spec_decode_num_draft_tokens_total", ""] == 2
    assert seen["draftd_spec_decode_num_accepted_tokens_total", ""] == 1
    assert seen["draftd_spec_decode_num_accepted_tokens_per_pos_total", "0"] == 1
    assert [seen["draftd_drafted_tokens_per_pos_total", str(depth)] for depth in range(3)] == [1, 1, 1]
    assert [seen["draftd_verified_tokens_per_pos_total", str(depth)] for depth in range(2)] == [1, 1]
    assert seen["draftd_request_acceptance_sum", ""] == 0.5
    assert seen["draftd_request_acceptance_count", ""] == 1
    assert seen["draftd_empty_tails_total", "STOPPED"] == 1
    assert seen["draftd_sessions", ""] == 1
    assert seen["draftd_index_tokens", "corpus"] == 54
    assert seen["draftd_index_bytes", "corpus"] > 0
    assert seen["draftd_draft_seconds_count", ""] == seen["draftd_draft_seconds_bucket", "+Inf"] == 2


async def test_loads_and_removals_are_counted_by_outcome(endpoint: Endpoint) -> None:
    before = await samples(endpoint)
    await endpoint.add(corpus_id="docs", token_chunks=[[1]])
    await endpoint.add(corpus_id="docs", token_chunks=[[-1]])
    await endpoint.remove(corpus_id="docs")
    endpoint.loader.close()
    await endpoint.add(corpus_id="docs", token_chunks=[[1]])
    after = await samples(endpoint)
    for name, outcome in (
        ("draftd_corpus_loads_total", "published"),
        ("draftd_corpus_loads_total", "refused"),
        ("draftd_corpus_loads_total", "failed"),
        ("draftd_corpus_removals_total", ""),
    ):
        assert after[name, outcome] - before[name, outcome] == 1, (name, outcome)
