"""Documents streamed into a corpus, and their jobs."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from draftd.config import LimitSettings
from draftd.ingest import Progress, Stage
from draftd.ingest.jobs import ENDS, Job, State
from draftd.transport import http_body, loads
from tests.children import children
from tests.unit.http.conftest import Endpoint, Start
from tests.unit.ingest.formats import PACKED, WRITTEN, npy
from tests.unit.ingest.posts import word_tokenizer

NDJSON = {"content-type": "application/x-ndjson"}
TYPES = {
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".npz": "application/x-npz",
    ".npy": "application/x-npy",
}
JOB_FIELDS = {
    "id",
    "state",
    "corpus",
    "documents",
    "tokens",
    "bytes_read",
    "bytes_total",
    "tokens_per_second",
    "eta_seconds",
    "error",
    "created",
}
MEBIBYTE = 1 << 20
RANDOM = npy(np.random.default_rng(7).integers(0, 100_000, 500_000, np.int32))  # its segment takes more than that
SECONDS = 30


async def add(
    endpoint: Endpoint, content: Any, corpus: str = "docs", headers: dict[str, str] = NDJSON, **query: str
) -> tuple[int, dict[str, Any]]:
    response = await endpoint.http.post(f"/corpora/{corpus}/documents", params=query, content=content, headers=headers)
    return response.status_code, response.json()


async def job(endpoint: Endpoint, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await endpoint.http.get(f"/jobs/{job_id}")).json()["job"]
    return found


async def ended(endpoint: Endpoint, job_id: str) -> dict[str, Any]:
    while (found := await job(endpoint, job_id))["state"] not in ENDS:  # noqa: ASYNC110 - all that a client can do
        await asyncio.sleep(0.01)
    return found


async def test_documents_are_visible_when_the_answer_comes(endpoint: Endpoint) -> None:
    status, reply = await add(endpoint, '{"token_ids": [1, 2], "id": "a"}\n{"token_ids": [3]}\n', tenant="acme")
    assert (status, set(reply), set(reply["job"])) == (200, {"success", "message", "job"}, JOB_FIELDS)
    assert reply["message"] == f"job {reply['job']['id']} is done: 2 documents, 3 tokens"
    assert reply["job"]["corpus"] == {"tenant": "acme", "model": "default", "adapter": "", "corpus_id": "docs"}
    assert await endpoint.counts(tenant="acme") == {"docs": 3}
    assert await job(endpoint, reply["job"]["id"]) == reply["job"]
    assert (await endpoint.http.get("/jobs")).json()["jobs"] == [reply["job"]]


async def test_documents_are_added_to_a_corpus_that_is_there_unless_it_should_be_new(endpoint: Endpoint) -> None:
    for _ in range(2):
        assert (await add(endpoint, '{"token_ids": [1, 2]}'))[0] == 200
    assert await endpoint.counts() == {"docs": 4}
    status, reply = await add(endpoint, '{"token_ids": [1, 2]}', mode="create")
    assert status == 400
    assert "exists already" in reply["message"]
    assert await endpoint.counts() == {"docs": 4}


async def test_loads_into_one_corpus_at_a_time_all_arrive(endpoint: Endpoint) -> None:
    answers = await asyncio.gather(*(add(endpoint, json.dumps({"token_ids": [1] * size})) for size in range(1, 6)))
    assert [status for status, _ in answers] == [200] * 5
    assert await endpoint.counts() == {"docs": 15}


async def test_of_loads_that_make_one_corpus_one_wins(endpoint: Endpoint) -> None:
    lines = [json.dumps({"token_ids": [1] * size}) for size in range(1, 6)]
    answers = await asyncio.gather(*(add(endpoint, line, mode="create") for line in lines))
    (winner,) = [reply for status, reply in answers if status == 200]
    assert all(status in (200, 400) for status, _ in answers)
    assert await endpoint.counts() == {"docs": winner["job"]["tokens"]}


@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
@pytest.mark.parametrize("ending", TYPES)
async def test_every_kind_of_body_is_taken(ending: str, encoding: str, endpoint: Endpoint) -> None:
    content = npy(np.array([1, 2, 3])) if ending == ".npy" else WRITTEN[ending]([[1, 2], [3]])
    packed = PACKED[{"": "", "gzip": ".gz", "zstd": ".zst"}[encoding]](content)
    headers = {"content-type": f"{TYPES[ending]}; charset=utf-8"} | ({"content-encoding": encoding} if encoding else {})
    assert (await add(endpoint, packed, headers=headers))[0] == 200
    assert await endpoint.counts() == {"docs": 3}


async def test_plain_text_is_one_document(start: Start, tmp_path: Path) -> None:
    endpoint = start(tokenizer=word_tokenizer(tmp_path))
    status, reply = await add(endpoint, "the cat\nsat", headers={"content-type": "text/plain"})
    assert (status, reply["job"]["documents"], reply["job"]["tokens"]) == (200, 1, 3)


async def test_an_id_may_hold_what_a_path_does(endpoint: Endpoint) -> None:
    assert (await add(endpoint, '{"token_ids": [1]}', corpus="a/b/documents/ö"))[0] == 200
    assert await endpoint.counts() == {"a/b/documents/ö": 1}


@pytest.mark.parametrize(
    ("query", "headers", "complaint"),
    [
        ({"ack": "seen"}, NDJSON, "ack: 'seen' should be one of received, durable, visible"),
        ({"mode": "replace"}, NDJSON, "mode: 'replace' should be one of add, create"),
        ({"tenent": "acme"}, NDJSON, "'tenent' is unknown; the nearest is 'tenant'"),
        ({"tenant": ""}, NDJSON, "tenant is empty"),
        ({}, {}, "content-type: '' should be one of application/x-ndjson, "),
        ({}, {"content-type": "application/json"}, "content-type: 'application/json' should be one of"),
        ({}, NDJSON | {"content-encoding": "br"}, "content-encoding: 'br' should be gzip or zstd, or left out"),
    ],
)
async def test_what_is_wrong_with_the_call_is_said_before_the_body_is_read(
    query: dict[str, str], headers: dict[str, str], complaint: str, endpoint: Endpoint
) -> None:
    status, reply = await add(endpoint, "no JSON", headers=headers, **query)
    assert (status, set(reply)) == (400, {"success", "message"})
    assert complaint in reply["message"]


async def test_a_bad_line_is_named_and_nothing_of_the_load_is_kept(endpoint: Endpoint) -> None:
    await add(endpoint, '{"token_ids": [7]}')
    lines = ['{"token_ids": [1, 2, 3]}'] * 10_000
    lines[8_999] = '{"token_ids": [1, -2, 3]}'
    status, reply = await add(endpoint, "\n".join(lines))
    assert status == 400
    assert reply["message"] == "line 9000, token 1: id -2 is outside the vocabulary [0, 2147483647)"
    (_, failed) = (await endpoint.http.get("/jobs")).json()["jobs"]
    assert (failed["state"], failed["error"]) == ("failed", reply["message"])
    assert await endpoint.counts() == {"docs": 1}


@pytest.mark.parametrize("ack", ["received", "durable", "visible"])
async def test_the_answer_comes_at_the_level_that_was_asked_for(ack: str, endpoint: Endpoint) -> None:
    status, reply = await add(endpoint, '{"token_ids": [1, 2]}', ack=ack)
    assert status == (202 if ack == "received" else 200)
    assert (
        reply["job"]["state"]
        in {
            "received": ("waiting", "reading", "building", "durable", "done"),
            "durable": ("durable", "done"),
            "visible": ("done",),
        }[ack]
    )
    done = await ended(endpoint, reply["job"]["id"])
    assert (done["state"], done["tokens"]) == ("done", 2)
    assert await endpoint.counts() == {"docs": 2}


async def test_a_load_that_was_only_received_tells_its_job_what_was_wrong(endpoint: Endpoint) -> None:
    status, reply = await add(endpoint, '"text"', ack="received")
    assert status == 202
    failed = await ended(endpoint, reply["job"]["id"])
    assert failed["state"] == "failed"
    assert "text needs a tokenizer" in failed["error"]


async def test_a_body_above_the_limit_is_refused(start: Start) -> None:
    endpoint = start(max_upload_bytes=1024)
    status, reply = await add(endpoint, '{"token_ids": [1]}\n' * 100)
    assert status == 413
    assert "longer than 1024 bytes, the limit corpora.max_upload_bytes" in reply["message"]


async def test_bytes_over_a_limit_are_507_with_the_figures(start: Start) -> None:
    endpoint = start(limits=LimitSettings.model_validate({"namespace_bytes": MEBIBYTE}))
    status, reply = await add(endpoint, RANDOM, headers={"content-type": "application/x-npy"})
    assert status == 507, reply
    assert "limits.namespace_bytes, 1.0MiB" in reply["message"]
    assert await endpoint.counts() == {}
    assert (await add(endpoint, '{"token_ids": [1]}'))[0] == 200  # what was reserved is given back


class Slow:
    """A body of one line, whose end waits until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"token_ids": [1, 2]}\n'
        self.begun.set()
        await self.go.wait()
        yield b'{"token_ids": [3]}\n'


async def test_when_too_many_loads_arrive_or_wait_more_are_429(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loads, "MOST_LOADS", 2)
    slow = [Slow(), Slow()]
    adding = [asyncio.create_task(add(endpoint, body)) for body in slow]
    for body in slow:
        await body.begun.wait()
    status, reply = await add(endpoint, '{"token_ids": [1]}')
    assert status == 429
    assert reply["message"].startswith("2 loads arrive, wait or run already, the most that are taken")
    for body in slow:
        body.go.set()
    assert [status for status, _ in await asyncio.gather(*adding)] == [200, 200]
    assert (await add(endpoint, '{"token_ids": [1]}'))[0] == 200


async def test_a_client_that_falls_silent_is_given_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_body, "SILENCE", 0.05)
    status, reply = await add(endpoint, Slow())
    assert status == 400
    assert "the body stopped for" in reply["message"]
    assert await endpoint.counts() == {}


async def test_a_job_that_is_not_there_is_404(endpoint: Endpoint) -> None:
    for call in (endpoint.http.get, endpoint.http.delete):
        response = await call("/jobs/none")
        assert (response.status_code, response.json()["success"]) == (404, False)
        assert "job 'none': there is none" in response.json()["message"]


async def test_a_load_is_cancelled_while_its_documents_arrive(endpoint: Endpoint) -> None:
    body = Slow()
    adding = asyncio.create_task(add(endpoint, body))
    await body.begun.wait()
    (arriving,) = (await endpoint.http.get("/jobs")).json()["jobs"]
    assert (arriving["state"], arriving["bytes_read"]) == ("receiving", 22)
    response = await endpoint.http.delete(f"/jobs/{arriving['id']}")
    assert (response.status_code, response.json()["job"]["state"]) == (200, "cancelled")
    status, reply = await adding
    assert (status, reply["message"]) == (409, "the load was cancelled")
    assert await endpoint.counts() == {}


async def test_a_load_is_cancelled_while_its_segment_is_built(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    building = threading.Event()
    progressed = Job.progressed

    def stopping_then(job: Job, progress: Progress) -> None:
        progressed(job, progress)
        if progress.stage is Stage.BUILDING:
            children()[0].suspend()  # it would be done before it could be cancelled
            building.set()

    monkeypatch.setattr(Job, "progressed", stopping_then)
    _, reply = await add(endpoint, RANDOM, headers={"content-type": "application/x-npy"}, ack="received")
    assert await asyncio.to_thread(building.wait, SECONDS)
    response = await endpoint.http.delete(f"/jobs/{reply['job']['id']}")
    assert response.json()["job"]["state"] == "cancelled"
    assert not children()
    assert await endpoint.counts() == {}


async def test_a_load_that_is_done_is_not_cancelled(endpoint: Endpoint) -> None:
    _, reply = await add(endpoint, '{"token_ids": [1]}')
    response = await endpoint.http.delete(f"/jobs/{reply['job']['id']}")
    assert response.json()["job"] == reply["job"]
    assert await endpoint.counts() == {"docs": 1}


async def test_a_killed_loader_is_500_and_leaves_nothing(endpoint: Endpoint) -> None:
    adding = asyncio.create_task(add(endpoint, RANDOM, headers={"content-type": "application/x-npy"}))
    while not [job for job in endpoint.loads.jobs.all() if job.state is State.READING]:  # noqa: ASYNC110 - likewise
        await asyncio.sleep(0.01)
    (child,) = children()
    child.kill()
    status, reply = await adding
    assert status == 500
    assert "killed by signal 9; is there enough memory" in reply["message"]
    assert await endpoint.counts() == {}


async def test_before_it_is_ready_documents_are_not_taken(start: Start) -> None:
    endpoint = start(waiting_for=("corpora",))
    status, reply = await add(endpoint, '{"token_ids": [1]}')
    assert (status, set(reply)) == (503, {"success", "message"})
