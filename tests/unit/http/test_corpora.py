"""The calls on external corpora: replies field by field, and what becomes of wrong ones."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from draftd.ingest import Cancellation, CorpusKey, LoaderError, LoadFile, LoadRequest
from tests.children import children
from tests.unit.http.conftest import Endpoint, Start
from tests.unit.ingest.posts import word_tokenizer

ADD_FIELDS = {"success", "corpus_id", "message", "loaded_token_count"}


async def test_a_corpus_comes_is_listed_and_goes(endpoint: Endpoint) -> None:
    assert await endpoint.add(corpus_id="docs", token_chunks=[[1, 2], [3]]) == (
        200,
        {
            "success": True,
            "corpus_id": "docs",
            "message": "corpus 'docs' of default/default holds 3 tokens",
            "loaded_token_count": 3,
        },
    )
    response = await endpoint.http.get("/list_external_corpora")
    assert response.json() == {"success": True, "corpus_token_counts": {"docs": 3}, "message": "1 corpus"}
    assert await endpoint.remove(corpus_id="docs") == (
        200,
        {"success": True, "message": "corpus 'docs' of default/default is removed"},
    )
    assert await endpoint.counts() == {}


async def test_they_are_listed_in_the_order_of_their_names(endpoint: Endpoint) -> None:
    for name in ("b", "a", "c"):
        await endpoint.add(corpus_id=name, token_chunks=[[1]])
    response = await endpoint.http.get("/list_external_corpora")
    assert list(response.json()["corpus_token_counts"]) == ["a", "b", "c"]
    assert response.json()["message"] == "3 corpora"


async def test_an_absent_id_is_generated(endpoint: Endpoint) -> None:
    _, reply = await endpoint.add(token_chunks=[[1]])
    assert await endpoint.counts() == {reply["corpus_id"]: 1}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "exactly one of"),
        ({"token_chunks": [[1], [2, -3]]}, "document 1, token 1: id -3"),
        ({"token_chunks": []}, "the corpus is empty"),
        ({"documents": ["text"]}, "set tokenizers = "),
        ({"file_path": "/etc/hostname"}, "set corpora.directories"),
        ({"tenant": "", "token_chunks": [[1]]}, "tenant is empty"),
        ({"tenent": "acme", "token_chunks": [[1]]}, "the nearest is 'tenant'"),
    ],
)
async def test_a_wrong_post_is_400_in_the_same_shape_and_publishes_nothing(
    fields: dict[str, Any], complaint: str, endpoint: Endpoint
) -> None:
    status, reply = await endpoint.add(**fields)
    assert status == 400
    assert set(reply) == ADD_FIELDS
    assert (reply["success"], reply["corpus_id"], reply["loaded_token_count"]) == (False, "", 0)
    assert complaint in reply["message"]
    assert await endpoint.counts() == {}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "corpus_id: is missing"),
        ({"corpus_id": "absent"}, "corpus 'absent' of default/default does not exist"),
        ({"corpus_id": 7}, "corpus_id: should be a string"),
        ({"corpus_id": "x", "tenant": ""}, "tenant is empty"),
        ({"corpus_id": "x", "modell": "m"}, "the nearest is 'model'"),
    ],
)
async def test_a_wrong_removal_is_400_in_the_same_shape(
    fields: dict[str, Any], complaint: str, endpoint: Endpoint
) -> None:
    status, reply = await endpoint.remove(**fields)
    assert (status, set(reply), reply["success"]) == (400, {"success", "message"}, False)
    assert complaint in reply["message"]


@pytest.mark.parametrize("query", ["tenant=", "tenent=acme", "tenant=a&tenant=b"])
async def test_a_wrong_list_call_is_400_in_the_same_shape(query: str, endpoint: Endpoint) -> None:
    response = await endpoint.http.get(f"/list_external_corpora?{query}")
    assert response.status_code == 400
    assert set(response.json()) == {"success", "corpus_token_counts", "message"}


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b'"x"'])
@pytest.mark.parametrize("call", ["/add_external_corpus", "/remove_external_corpus"])
async def test_a_body_that_is_no_json_object_is_400(call: str, body: bytes, endpoint: Endpoint) -> None:
    response = await endpoint.http.post(call, content=body)
    assert response.status_code == 400
    assert response.json()["success"] is False


async def test_unknown_calls_and_methods_answer_json_too(endpoint: Endpoint) -> None:
    for method, path, status in (("GET", "/nothing", 404), ("GET", "/add_external_corpus", 405)):
        response = await endpoint.http.request(method, path)
        assert response.status_code == status
        assert response.json()["success"] is False


async def test_the_body_limit_follows_the_settings(start: Start) -> None:
    body = {"token_chunks": [list(range(1000))]}
    assert (await start(max_body_bytes=100_000).add(**body))[0] == 200
    status, reply = await start(max_body_bytes=1024).add(**body)
    assert status == 413
    assert "longer than 1024 bytes, the limit corpora.max_body_bytes" in reply["message"]


async def test_a_body_without_end_is_cut_off(start: Start) -> None:
    endless = start(max_body_bytes=1024)
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 16
            yield b" " * (1 << 16)

    response = await endless.http.post("/add_external_corpus", content=body())
    assert response.status_code == 413
    assert sent < 1 << 20


async def test_the_token_limit_follows_the_settings(start: Start) -> None:
    assert (await start(max_tokens=3).add(token_chunks=[[1, 2, 3]]))[0] == 200
    limited = start(max_tokens=2)
    status, reply = await limited.add(token_chunks=[[1, 2, 3]])
    assert status == 413
    assert "more than 2 tokens" in reply["message"]
    assert await limited.counts() == {}


async def test_files_are_read_below_the_configured_directories(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('{"token_ids": [4, 5]}\n')
    status, reply = await start(directories=(tmp_path,)).add(file_path=str(file))
    assert (status, reply["loaded_token_count"]) == (200, 2)
    status, reply = await start(directories=(tmp_path / "other",)).add(file_path=str(file))
    assert status == 400
    assert "below none of corpora.directories" in reply["message"]


async def test_the_number_of_corpora_follows_the_settings(start: Start) -> None:
    two = start(max_corpora=2)
    one = start(max_corpora=1)
    for endpoint, expected in ((two, 200), (one, 507)):
        await endpoint.add(corpus_id="a", token_chunks=[[1]])
        status, reply = await endpoint.add(corpus_id="b", token_chunks=[[2]])
        assert status == expected, reply
    assert await two.counts() == {"a": 1, "b": 1}
    assert await one.counts() == {"a": 1}
    await one.remove(corpus_id="a")
    assert (await one.add(corpus_id="b", token_chunks=[[2]]))[0] == 200


async def test_an_id_in_use_is_refused_until_it_is_removed(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2]])
    status, reply = await endpoint.add(corpus_id="docs", token_chunks=[[3]])
    assert status == 400
    assert "exists already; remove it first" in reply["message"]
    assert await endpoint.counts() == {"docs": 2}
    await endpoint.remove(corpus_id="docs")
    assert (await endpoint.add(corpus_id="docs", token_chunks=[[3]]))[0] == 200


async def test_an_id_in_use_is_refused_before_the_documents_are_read(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1]])
    _, reply = await endpoint.add(corpus_id="docs", token_chunks=["no list of ids"])
    assert "exists already" in reply["message"]


async def test_of_two_posts_with_one_id_exactly_one_wins(endpoint: Endpoint) -> None:
    posts = [endpoint.add(corpus_id="docs", token_chunks=[[1] * size]) for size in (50, 60, 70, 80)]
    answers = await asyncio.gather(*posts)
    winners = [reply for status, reply in answers if status == 200]
    assert len(winners) == 1
    assert all(
        "exists already" in reply["message"] or "being loaded" in reply["message"]
        for status, reply in answers
        if status == 400
    )
    assert await endpoint.counts() == {"docs": winners[0]["loaded_token_count"]}


async def test_ids_belong_to_their_tenant_model_and_adapter(endpoint: Endpoint) -> None:
    owners: list[dict[str, str]] = [{}, {"tenant": "acme"}, {"model": "m"}, {"adapter": "a"}]
    for size, owner in enumerate(owners, start=1):
        assert (await endpoint.add(corpus_id="docs", token_chunks=[[7] * size], **owner))[0] == 200
    for size, owner in enumerate(owners, start=1):
        assert await endpoint.counts(**owner) == {"docs": size}
    assert (await endpoint.remove(corpus_id="docs", tenant="acme"))[0] == 200
    assert await endpoint.counts(tenant="acme") == {}
    assert await endpoint.counts() == {"docs": 1}


async def test_a_stated_tokenizer_narrows_list_and_removal(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", tokenizer="f1", token_chunks=[[1]])
    assert await endpoint.counts() == {"docs": 1}
    assert await endpoint.counts(tokenizer="f1") == {"docs": 1}
    assert await endpoint.counts(tokenizer="f2") == {}
    assert (await endpoint.remove(corpus_id="docs", tokenizer="f2"))[0] == 400
    assert (await endpoint.remove(corpus_id="docs", tokenizer="f1"))[0] == 200


async def test_text_is_tokenized_with_the_configured_tokenizer(start: Start, tmp_path: Path) -> None:
    status, reply = await start(tokenizer=word_tokenizer(tmp_path)).add(documents=["the cat sat", "a mat"])
    assert (status, reply["loaded_token_count"]) == (200, 5)


async def test_a_loader_that_fails_is_500_in_the_same_shape(endpoint: Endpoint) -> None:
    endpoint.loader.close()
    status, reply = await endpoint.add(token_chunks=[[1]])
    assert status == 500
    assert set(reply) == ADD_FIELDS
    assert reply["message"] == "the server is stopping"


async def test_before_it_is_ready_corpora_are_not_taken(start: Start) -> None:
    endpoint = start(waiting_for=("corpora",))
    status, reply = await endpoint.add(corpus_id="docs", token_chunks=[[1]])
    assert (status, set(reply)) == (503, ADD_FIELDS)
    assert reply["message"] == "the server is not ready, it waits for corpora"
    endpoint.readiness.up("corpora")
    assert (await endpoint.add(corpus_id="docs", token_chunks=[[1]]))[0] == 200


async def test_a_body_that_cannot_be_kept_is_500_in_the_same_shape(endpoint: Endpoint) -> None:
    endpoint.library.scratch.rmdir()
    try:
        status, reply = await endpoint.add(token_chunks=[[1]])
    finally:
        endpoint.library.scratch.mkdir()
    assert (status, set(reply)) == (500, ADD_FIELDS)
    assert "can't be kept" in reply["message"]


async def test_a_loader_that_is_killed_leaves_the_id_free(endpoint: Endpoint, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.jsonl")
    key = CorpusKey(tenant="default", model="default", adapter="", corpus_id="docs")
    request = LoadRequest(key=key, source=LoadFile(path=tmp_path / "slow.jsonl"))
    options = {"on_progress": lambda _: None, "on_ack": lambda _: None, "cancelled": Cancellation()}
    with ThreadPoolExecutor(1) as threads:
        loading = threads.submit(lambda: endpoint.library.load(request, **options))
        with (tmp_path / "slow.jsonl").open("w"):  # waits until the loader reads
            (loader,) = children()
            loader.kill()
            with pytest.raises(LoaderError, match="killed by signal 9"):
                loading.result(30)
    assert await endpoint.counts() == {}
    assert (await endpoint.add(corpus_id="docs", token_chunks=[[1]]))[0] == 200


@pytest.mark.parametrize("field", ["corpus_id", "file_path", "tenant"])
async def test_a_name_that_cannot_be_printed_is_the_clients_mistake(endpoint: Endpoint, field: str) -> None:
    content = {} if field == "file_path" else {"token_chunks": [[1, 2]]}
    body = json.dumps({field: "\ud800"} | content)  # escaped, as a client could send it
    response = await endpoint.http.post("/add_external_corpus", content=body)
    assert response.status_code == 400
    assert field in response.json()["message"]
