"""What the acknowledgement of a call means for the drafts right after it."""

from pathlib import Path

import pytest

from draftd.client import Namespace
from draftd.client.local import LocalClient
from tests.unit.http.conftest import Endpoint, Start
from tests.unit.ingest.posts import known, word_tokenizer

ACME = Namespace(tenant="acme", model="m")


def drafted(endpoint: Endpoint, namespace: Namespace, context: list[int]) -> list[int]:
    """The likeliest token that a fresh request gets after `context`, if any."""
    with LocalClient(endpoint.engine, namespace) as client:
        request = client.open("request", context, share="none", wait=True)
        draft = request.draft(budget=1)
        request.close("finished")
    return [int(token) for token in draft.tokens]


async def test_a_corpus_is_in_drafts_once_it_is_acknowledged_and_not_after_its_removal(endpoint: Endpoint) -> None:
    owner = {"tenant": "acme", "model": "m"}
    assert drafted(endpoint, ACME, [1, 2]) == []
    await endpoint.add(corpus_id="docs", token_chunks=[[9, 1, 2, 3, 4, 5]], **owner)
    assert drafted(endpoint, ACME, [1, 2]) == [3]
    await endpoint.remove(corpus_id="docs", **owner)
    assert drafted(endpoint, ACME, [1, 2]) == []


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
async def test_a_corpus_is_in_no_draft_of_another_namespace(other: Namespace, endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3, 4, 5]], tenant="acme", model="m")
    assert drafted(endpoint, other, [1, 2]) == []


async def test_an_empty_tenant_name_reaches_no_tenant(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3, 4, 5]], tenant="acme")
    status, _ = await endpoint.add(corpus_id="other", token_chunks=[[1, 2, 9]], tenant="")
    assert status == 400
    response = await endpoint.http.get("/list_external_corpora?tenant=")
    assert response.json()["corpus_token_counts"] == {}
    with pytest.raises(ValueError, match="tenant is empty"):
        Namespace(tenant="")


async def test_without_a_stated_tokenizer_ids_serve_those_who_state_it_and_those_who_do_not(
    start: Start, tmp_path: Path
) -> None:
    file = word_tokenizer(tmp_path)
    endpoint = start(tokenizer=file)
    await endpoint.add(corpus_id="docs", documents=["the cat sat on"])
    assert drafted(endpoint, Namespace(), [1, 2]) == [3]
    assert drafted(endpoint, Namespace(tokenizer=known(file).fingerprint), [1, 2]) == [3]


LINES = ['{"token_ids": [1, 2, 3, 4, 5]}'] * 10_000


@pytest.mark.parametrize(
    ("broken_line", "complaint"),
    [
        ('{"token_ids": [1, 2, -3]}', "line 9000, token 2: id -3"),
        ('{"token_ids": [1, 2', "line 9000: not JSON"),
        ('{"token_id": [1, 2]}', "line 9000: a line should be"),
        ('{"token_ids": [' + "7," * 60_000 + "7]}", "line 9000: the corpus holds more than 100000 tokens"),
    ],
)
async def test_a_load_that_fails_half_way_leaves_the_old_corpus_serving_and_nothing_else(
    broken_line: str, complaint: str, start: Start, tmp_path: Path
) -> None:
    endpoint = start(directories=(tmp_path,), max_tokens=100_000)
    await endpoint.add(corpus_id="old", token_chunks=[[1, 2, 8, 8, 8]])
    lines = LINES.copy()
    lines[8_999] = broken_line
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    status, reply = await endpoint.add(corpus_id="new", file_path=str(tmp_path / "new.jsonl"))
    assert status == (413 if "100000 tokens" in complaint else 400)
    assert complaint in reply["message"]
    assert await endpoint.counts() == {"old": 5}
    assert drafted(endpoint, Namespace(), [1, 2]) == [8]
    # The id is free: what failed holds nothing back.
    (tmp_path / "new.jsonl").write_text(LINES[0])
    assert (await endpoint.add(corpus_id="new", file_path=str(tmp_path / "new.jsonl")))[0] == 200


async def test_a_refused_duplicate_leaves_the_old_corpus_serving(endpoint: Endpoint) -> None:
    await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 3, 4, 5]])
    assert (await endpoint.add(corpus_id="docs", token_chunks=[[1, 2, 8, 8, 8]]))[0] == 400
    assert drafted(endpoint, Namespace(), [1, 2]) == [3]


async def test_a_corpus_of_two_namespaces_is_published_in_both_or_in_none(start: Start, tmp_path: Path) -> None:
    file = word_tokenizer(tmp_path)
    endpoint = start(tokenizer=file, max_corpora=1)
    fingerprint = known(file).fingerprint
    await endpoint.add(corpus_id="stated", tokenizer=fingerprint, token_chunks=[[6, 6, 6]])
    # There is room where no tokenizer is stated, and none where it is.
    status, reply = await endpoint.add(corpus_id="both", documents=["the cat sat on"])
    assert status == 507
    assert "engine.max_corpora" in reply["message"]
    assert drafted(endpoint, Namespace(), [1, 2]) == []
    assert await endpoint.counts() == {"stated": 3}
