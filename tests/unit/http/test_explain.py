"""Explanations: what is said of a draft, to whom, and what becomes of wrong questions."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.engine import LONGEST_CONTEXT
from draftd.transport.http_explain import LONGEST_BODY
from tests.unit.http.conftest import Endpoint, Start
from tests.unit.ingest.posts import word_tokenizer

PAGE = Path(__file__).parents[3] / "docs" / "http.md"
ACME = Namespace(tenant="acme", model="m")
OWNER = {"tenant": "acme", "model": "m"}


async def explain(endpoint: Endpoint, **fields: Any) -> tuple[int, dict[str, Any]]:
    response = await endpoint.http.post("/explain", content=json.dumps(OWNER | fields))
    return response.status_code, response.json()


def finish(
    endpoint: Endpoint,
    request_id: str,
    output: Sequence[int],
    *,
    namespace: Namespace = ACME,
    share: Literal["outputs", "group"] = "outputs",
    group: str = "",
) -> None:
    """A request with that output; on return it is in the history."""
    with LocalClient(endpoint.engine, namespace) as client:
        request = client.open(request_id, [], share=share, group=group)
        request.step(list(output))
        request.close("finished")
        client.open("sign", [1], wait=True).close()


def labels(reply: dict[str, Any]) -> set[str]:
    """Of every document that is named."""
    return {
        evidence["document"]
        for node in reply["nodes"]
        for evidence in node["evidence"]
        if evidence["document"] is not None
    }


def drafted(reply: dict[str, Any]) -> set[int]:
    return {node["token_id"] for node in reply["nodes"]}


async def test_every_source_of_a_node_is_told_with_its_document(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[9, 1, 2, 3, 4], [2, 5]], **OWNER)
    finish(endpoint, "earlier", [1, 2, 3, 6])
    status, reply = await explain(endpoint, token_ids=[7, 2, 3, 1, 2], max_nodes=1)
    assert status == 200
    assert reply["message"] == "5 tokens of context, 1 node"
    assert (reply["context_tokens"], reply["reason"]) == (5, "NOT_EMPTY")
    assert reply["sources"] == [
        {"source": "own_text", "corpus_id": None, "running": False, "tokens": 5, "documents": 1},
        {"source": "shared_history", "corpus_id": None, "running": False, "tokens": 4, "documents": 1},
        {"source": "corpus", "corpus_id": "docs", "running": False, "tokens": 7, "documents": 2},
    ]
    (node,) = reply["nodes"]
    assert (node["token_id"], node["parent"], node["text"]) == (3, -1, None)
    assert 0 < node["survival"] < 1
    history, corpus, own = node["evidence"]
    assert history["time"] is not None
    assert history | {"time": 0} == {
        "source": "shared_history",
        "corpus_id": None,
        "running": False,
        "match_length": 2,
        "count": 1,
        "total": 1,
        "document": "earlier",
        "position": 2,
        "time": 0,
    }
    assert (corpus["source"], corpus["corpus_id"]) == ("corpus", "docs")
    assert (corpus["match_length"], corpus["count"], corpus["total"], corpus["position"]) == (2, 1, 1, 3)
    assert own == {
        "source": "own_text",
        "corpus_id": None,
        "running": False,
        "match_length": 1,
        "count": 1,
        "total": 1,
        "document": "",
        "position": 2,
        "time": None,
    }


async def test_the_example_of_the_page_is_what_is_answered(endpoint: Endpoint) -> None:
    """But for times, and for probabilities, which the drafter learns."""
    text = PAGE.read_text(encoding="utf-8").partition("## Explaining a draft")[2]
    question, answer = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)[:2])
    owner = {"tenant": question["tenant"], "model": question["model"]}
    documents = [{"token_ids": [2, 3, 9, 8, 2], "id": "handbook-17"}, {"token_ids": [2, 5], "id": "handbook-18"}]
    await endpoint.http.post(
        "/corpora/docs/documents",
        params=owner,
        content="\n".join(map(json.dumps, documents)),
        headers={"content-type": "application/x-ndjson"},
    )
    finish(endpoint, "req-1", [1, 2, 3, 6], namespace=Namespace(**owner))
    _, reply = await explain(endpoint, **question)

    def timeless(told: dict[str, Any]) -> dict[str, Any]:
        nodes = [
            node | {"survival": 0, "evidence": [known | {"time": 0} for known in node["evidence"]]}
            for node in told["nodes"]
        ]
        return told | {"nodes": nodes}

    assert timeless(reply) == timeless(answer)


async def test_text_is_tokenized_and_tokens_are_spelt(start: Start, tmp_path: Path) -> None:
    endpoint = start(tokenizer=word_tokenizer(tmp_path))
    await endpoint.add(corpus_id="docs", documents=["the cat sat on a mat"], **OWNER)
    status, reply = await explain(endpoint, text="the cat", shape="chain", max_nodes=3)
    assert status == 200, reply
    assert [node["text"] for node in reply["nodes"]] == [" sat", " on", " a"]
    assert [node["parent"] for node in reply["nodes"]] == [-1, 0, 1]
    status, reply = await explain(endpoint, text="half a pair: \ud800")
    assert (status, reply["message"]) == (400, "text: no valid text at character 13")
    status, reply = await explain(endpoint, token_ids=[1, 7])
    assert (status, reply["message"]) == (400, "token 1 is 7, outside [0, 7)")


async def test_nothing_is_drafted_below_a_stop_id(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3, 4]], **OWNER)
    _, reply = await explain(endpoint, token_ids=[3, 1], stop_ids=[3])
    assert drafted(reply) == {2, 3}
    _, reply = await explain(endpoint, token_ids=[1, 2, 3], stop_ids=[3])
    assert (reply["nodes"], reply["reason"]) == ([], "STOPPED")
    assert reply["message"].endswith("an empty draft: its output holds a stop id: the text has ended")
    _, reply = await explain(endpoint, token_ids=[1, 2, 3], stop_ids=[3], output_tokens=0)
    assert drafted(reply) == {4}


async def test_an_empty_draft_says_why(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3]], **OWNER)
    status, reply = await explain(endpoint, token_ids=[1, 2], min_survival=0.99)
    assert (status, reply["nodes"], reply["reason"]) == (200, [], "BELOW_THRESHOLD")
    status, reply = await explain(endpoint, token_ids=[8, 9])
    assert (status, reply["nodes"], reply["reason"]) == (200, [], "NO_MATCH")
    assert reply["message"] == ("2 tokens of context, an empty draft: nothing that it reads says how the text goes on")


@pytest.mark.parametrize(
    ("fields", "status", "complaint"),
    [
        ({}, 400, "give either text or token_ids"),
        ({"token_ids": [1], "text": "x"}, 400, "give either text or token_ids"),
        ({"token_ids": [1], "nodes": 3}, 400, "field 'nodes' is unknown; the nearest is 'max_nodes'"),
        ({"token_ids": [1, -2]}, 400, "token_ids: token 1 is -2, outside [0, 2147483648)"),
        ({"token_ids": [2**31 - 1]}, 400, "token 0 is 2147483647, outside [0, 2147483647)"),
        ({"token_ids": [1, True]}, 400, "token_ids.1: should be a valid integer"),
        ({"token_ids": [1, 2**80]}, 400, "token_ids"),
        ({"token_ids": [1], "stop_ids": [-1]}, 400, "stop_ids: token 0 is -1"),
        ({"token_ids": [1], "stop_ids": [5] * 300}, 400, "stop_ids: 300 ids; at most 256"),
        ({"token_ids": [1], "output_tokens": 2}, 400, "output_tokens: 2 of a text of 1 token"),
        ({"token_ids": [1], "max_nodes": 0}, 400, "max_nodes: should be greater than or equal to 1"),
        ({"token_ids": [1], "shape": "bush"}, 400, "shape: should be 'tree' or 'chain'"),
        ({"token_ids": [1], "group": "a\nb"}, 400, "group: 'a\\nb' has characters that can't be printed"),
        ({"token_ids": [1], "tenant": ""}, 400, "tenant is empty"),
        ({"token_ids": [1] * (LONGEST_CONTEXT + 1)}, 400, f"more than the {LONGEST_CONTEXT} that can be explained"),
        ({"text": "x"}, 400, "text needs a tokenizer, and none is configured for tenant 'acme' and model 'm'"),
        ({"text": "x" * LONGEST_BODY}, 413, f"the body is longer than {LONGEST_BODY} bytes"),
        ({"token_ids": [1], "corpora": ["other"]}, 404, "no corpus 'other' in namespace acme/m; it has: docs"),
        ({"token_ids": [1], "tenant": "nobody"}, 404, "nothing is known of namespace nobody/m"),
        (
            {"token_ids": [1], "tokenizer": "f1"},
            404,
            "no request, corpus or history was of it; the tokenizers that are known there: none stated",
        ),
    ],
)
async def test_a_question_that_can_not_be_answered(
    fields: dict[str, Any], status: int, complaint: str, endpoint: Endpoint
) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3]], **OWNER)
    answered, reply = await explain(endpoint, **fields)
    assert (answered, reply["success"]) == (status, False)
    assert complaint in reply["message"]


async def test_to_ask_brings_no_namespace_into_existence(endpoint: Endpoint) -> None:
    for _ in range(2):
        status, _ = await explain(endpoint, token_ids=[1])
        assert status == 404
    assert endpoint.engine.histories() == []


@pytest.mark.parametrize(
    "other",
    [
        Namespace(),
        Namespace(tenant="acme2", model="m"),
        Namespace(tenant="acme", model="m2"),
        Namespace(tenant="acme", model="m", adapter="a"),
        Namespace(tenant="acme", model="m", tokenizer="f1"),
    ],
)
async def test_nothing_of_another_namespace_is_told(other: Namespace, endpoint: Endpoint) -> None:
    """Of tenant, model, adapter or tokenizer: their documents would match."""
    secret = {"tenant": other.tenant, "model": other.model, "adapter": other.adapter}
    if other.tokenizer:
        secret["tokenizer"] = other.tokenizer
    await endpoint.add(corpus_id="secret corpus", token_chunks=[[1, 2, 99]], **secret)
    finish(endpoint, "secret", [1, 2, 98], namespace=other)
    finish(endpoint, "secret", [1, 2, 97], namespace=other, share="group", group="team")
    finish(endpoint, "mine", [1, 2, 3])
    _, reply = await explain(endpoint, token_ids=[1, 2], group="team")
    assert {node["token_id"] for node in reply["nodes"]} <= {1, 2, 3}
    assert "mine" in labels(reply)
    assert "secret" not in str(reply)
    status, reply = await explain(endpoint, token_ids=[1, 2], corpora=["secret corpus"])
    assert (status, reply["message"]) == (404, "no corpus 'secret corpus' in namespace acme/m; it has: none")


async def test_a_group_is_told_to_who_names_it_and_a_hidden_history_to_nobody(endpoint: Endpoint) -> None:
    finish(endpoint, "of all", [1, 2, 3])
    finish(endpoint, "of the team", [1, 2, 4], share="group", group="team")
    finish(endpoint, "of others", [1, 2, 5], share="group", group="others")
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 6]], **OWNER)
    told = {}
    for group in ("", "team", "nobody"):
        _, reply = await explain(endpoint, token_ids=[1, 2], group=group)
        told[group] = labels(reply) - {""}
    assert told == {"": {"of all"}, "team": {"of all", "of the team"}, "nobody": {"of all"}}
    _, reply = await explain(endpoint, token_ids=[1, 2], group="team", history=False)
    assert [source["source"] for source in reply["sources"]] == ["own_text", "corpus"]
    assert (labels(reply), drafted(reply)) == ({""}, {6})
    _, reply = await explain(endpoint, token_ids=[1, 2], group="team", history=False, corpora=[])
    assert (len(reply["sources"]), reply["nodes"]) == (1, [])


async def test_what_running_requests_generate_is_told_without_a_document(endpoint: Endpoint) -> None:
    text = list(range(20, 60))
    with LocalClient(endpoint.engine, ACME) as client:
        running = client.open("running", [1])
        running.step(text)
        client.open("of the team", [1], share="group", group="team").step([*text[:30], 99, 98, 97, 96, 95, 94, 93, 92])
        client.open("hidden", [1], share="none").step([*text[:30], 91, 90, 89, 88, 87, 86, 85, 84])
        client.open("sign", [1], wait=True).close()
        _, reply = await explain(endpoint, token_ids=[8, *text[:30]], max_nodes=3)
        assert reply["sources"][1:] == [
            {"source": "shared_history", "corpus_id": None, "running": False, "tokens": 0, "documents": 0},
            {"source": "shared_history", "corpus_id": None, "running": True, "tokens": 40, "documents": 0},
        ]
        assert drafted(reply) == {50, 51, 52}
        (evidence,) = reply["nodes"][0]["evidence"]
        assert (evidence["running"], evidence["match_length"], evidence["document"]) == (True, 30, None)
        _, reply = await explain(endpoint, token_ids=[8, *text[:30]], group="team")
        assert {99, 50} <= drafted(reply) <= {*text, *range(92, 100)}
        _, reply = await explain(endpoint, token_ids=[8, *text[:30]], group="team", history=False)
        assert (len(reply["sources"]), drafted(reply)) == (1, set())
        deleted = await endpoint.http.post("/delete_documents", json=OWNER | {"history": True})
        assert deleted.status_code == 200
        _, reply = await explain(endpoint, token_ids=[8, *text[:30]], group="team")
        assert labels(reply) <= {""}


async def test_what_was_deleted_is_told_no_more(endpoint: Endpoint) -> None:
    finish(endpoint, "kept", [1, 2, 3])
    finish(endpoint, "gone", [1, 2, 4])
    document = '{"token_ids": [1, 2, 5], "id": "page"}\n'
    headers = {"content-type": "application/x-ndjson"}
    await endpoint.http.post("/corpora/docs/documents", params=OWNER, content=document, headers=headers)
    _, reply = await explain(endpoint, token_ids=[1, 2])
    assert {"kept", "gone", "page"} <= labels(reply)
    for selection in ({"history": True, "request_ids": ["gone"]}, {"corpus_id": "docs", "document_ids": ["page"]}):
        deleted = await endpoint.http.post("/delete_documents", json=OWNER | selection)
        assert deleted.json()["documents"] == 1
    _, reply = await explain(endpoint, token_ids=[1, 2])
    assert labels(reply) - {""} == {"kept"}
    assert not drafted(reply) & {4, 5}


async def test_before_the_server_is_ready_nothing_is_told(start: Start) -> None:
    status, reply = await explain(start(waiting_for=("corpora",)), token_ids=[1])
    assert (status, reply["message"]) == (503, "the server is not ready, it waits for corpora")
