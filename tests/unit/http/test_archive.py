"""Documents deleted for good, a namespace as one file, and what a failing disk looks like."""

import errno
import os
import tempfile
import threading
from typing import Any

import httpx
import pytest

from tests.unit.http.conftest import Endpoint, Start
from tests.unit.http.test_documents import add


async def test_a_namespace_moves_and_documents_are_deleted(start: Start) -> None:
    here, there = start(), start()
    await add(here, '{"token_ids": [1, 2], "id": "a"}\n{"token_ids": [3], "id": "b"}\n', tenant="acme")
    archive = await here.http.get("/export", params={"tenant": "acme"})
    assert archive.status_code == 200
    assert int(archive.headers["content-length"]) == len(archive.content)
    imported = await there.http.post("/import", content=archive.content)
    assert (imported.status_code, imported.json()["corpora"], imported.json()["tokens"]) == (200, 1, 3)
    assert imported.json()["message"] == "imported 1 corpus and 0 histories with 3 tokens"
    selection = {"tenant": "acme", "corpus_id": "docs", "document_ids": ["nope", "a", "no'"]}
    deleted: httpx.Response = await there.http.post("/delete_documents", json=selection)
    assert deleted.json() == {
        "success": True,
        "message": "deleted 1 document with 2 tokens; nothing is known as 'nope', \"no'\"",
        "documents": 1,
        "tokens": 2,
        "unmatched": ["nope", "no'"],
    }
    assert (await here.counts(tenant="acme"), await there.counts(tenant="acme")) == ({"docs": 3}, {"docs": 1})


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "give either corpus_id or history = true"),
        ({"corpus_id": "x", "ids": ["a"]}, "field 'ids' is unknown; the nearest is"),
        ({"corpus_id": "x", "document_ids": "a"}, "document_ids: should be a list"),
        ({"corpus_id": "x", "older_than": -60}, "older_than: -60 should be a time in unix seconds"),
        ({"corpus_id": "absent"}, "corpus 'absent' of default/default does not exist"),
    ],
)
async def test_a_wrong_selection_is_400(fields: dict[str, Any], complaint: str, endpoint: Endpoint) -> None:
    response = await endpoint.http.post("/delete_documents", json=fields)
    assert response.status_code == 400
    assert complaint in response.json()["message"]


@pytest.mark.parametrize("content", [b"", b"no archive at all" * 100])
async def test_what_is_no_archive_is_400(content: bytes, endpoint: Endpoint) -> None:
    response = await endpoint.http.post("/import", content=content)
    assert response.status_code == 400
    assert response.json()["message"]


@pytest.mark.parametrize(("number", "expected"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 500)])
async def test_a_disk_that_fails_is_said(
    number: int,
    expected: int,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "/secret/path")

    for name in ("load", "delete", "remove", "export", "import_"):
        monkeypatch.setattr(type(endpoint.library), name, fail)
    http = endpoint.http
    answers = [
        await http.post("/delete_documents", json={"corpus_id": "docs", "document_ids": ["a"]}),
        await http.post("/remove_external_corpus", json={"corpus_id": "docs"}),
        await http.get("/export"),
        await http.post("/import", content=b"archive"),
    ]
    said = f"the data directory failed: {os.strerror(number).lower()}; the server's log says more"
    assert [(answer.status_code, answer.json()["message"]) for answer in answers] == [(expected, said)] * 4
    assert caplog.text.count("/secret/path") == 4
    status, reply = await add(endpoint, '{"token_ids": [1]}')
    assert (status, reply["message"]) == (expected, said)


async def test_an_export_and_an_import_are_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    here, there = start(), start()
    await add(here, '{"token_ids": [1, 2]}')
    archive = await here.http.get("/export")
    await there.http.post("/import", content=archive.content)
    assert f"namespace default/default exported: {len(archive.content)} bytes" in caplog.text
    assert "archive imported: 1 corpus and 0 histories with 2 tokens" in caplog.text


async def test_what_arrived_is_removed_beside_the_event_loop(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gigabytes take a while, and steps over gRPC are on that loop."""
    cleanup = tempfile.TemporaryDirectory.cleanup
    threads: list[threading.Thread] = []

    def watched(folder: tempfile.TemporaryDirectory[str]) -> None:
        threads.append(threading.current_thread())
        cleanup(folder)

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", watched)
    await add(endpoint, '{"token_ids": [1]}')
    await endpoint.http.post("/import", content=b"archive")
    assert len(threads) >= 2
    assert threading.main_thread() not in threads
    assert list(endpoint.library.scratch.iterdir()) == []
