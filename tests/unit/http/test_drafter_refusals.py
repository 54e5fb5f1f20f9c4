"""What TensorRT-LLM's external drafter answers to what it can't take, and when it can't answer."""

from typing import Any

import pytest

from draftd.transport.http_drafter import LONGEST_BODY, LONGEST_NAME
from tests.unit.http.conftest import Endpoint, Start
from tests.unit.http.test_drafter import END, TEXT, draft, post


@pytest.mark.parametrize(
    ("fields", "status", "complaint"),
    [
        ({"prefix": None}, 400, "prefix: should be a valid list"),
        ({"prefix": [1, "2"]}, 400, "prefix.1: should be a valid integer"),
        ({"prefix": [1, True]}, 400, "prefix.1: should be a valid integer"),
        ({"prefix": [1, -2]}, 400, "prefix: token 1 is -2, outside [0, 2147483648)"),
        ({"prefix": [1, 2**80]}, 400, "prefix"),
        ({"request_id": None}, 400, "request_id: should be an integer or a string"),
        ({"request_id": True}, 400, "request_id: should be an integer or a string"),
        ({"request_id": "r" * 300}, 400, "request_id: takes 300 bytes; give one of at most 127"),
        ({"request_id": 10**200}, 400, "request_id: takes 201 bytes; give one of at most 127"),
        ({"request_id": "a\nb"}, 400, "request_id: 'a\\nb' has characters that can't be printed"),
        ({"verifier": "\ud800"}, 400, "verifier: '\\ud800' has characters that can't be printed"),
        ({"verifier": "v" * 300}, 400, "verifier: takes 300 bytes; give one of at most 127"),
        ({"verifier": "/" * 43}, 400, "verifier: takes 129 bytes; give one of at most 127"),
        ({"end_id": "eos"}, 400, "end_id: should be a valid integer"),
        ({"end_id": 2**31 - 1}, 400, "end_id: should be less than 2147483647"),
        ({"max_sequence_length": -1}, 400, "max_sequence_length: should be greater than or equal to 0"),
        ({"max_draft_len": 0}, 400, "max_draft_len: should be greater than or equal to 1"),
        ({"max_draft_length": 4}, 400, "field 'max_draft_length' is unknown; the nearest is 'max_draft_len'"),
        ({"tenant" + "t" * 10**6: 1}, 400, f"field 'tenant{'t' * 30}... is unknown; the nearest is 'tenant'"),
        ({"prefix": [2**31 - 1]}, 400, "token 0 of prompt and output is 2147483647"),
        ({"tenant": ""}, 400, "tenant is empty"),
        ({"tenant": "a\nb"}, 400, "tenant: 'a\\nb' has characters that can't be printed"),
        ({"model": 3}, 400, "model: should be a valid string"),
        ({"prefix": [10**6] * (LONGEST_BODY // 8)}, 413, f"the body is longer than {LONGEST_BODY} bytes"),
    ],
)
async def test_a_body_that_can_not_be_meant(
    fields: dict[str, Any], status: int, complaint: str, endpoint: Endpoint
) -> None:
    answered, reply = await post(endpoint.http, **{"prefix": TEXT, "request_id": 7} | fields)
    assert (answered, reply["success"], reply["draft_tokens"]) == (status, False, [])
    assert complaint in reply["message"]
    assert await draft(endpoint, TEXT, max_draft_len=2) == [4, 5], "nothing is left behind"


async def test_names_as_long_as_they_may_be(endpoint: Endpoint) -> None:
    status, reply = await post(endpoint.http, prefix=TEXT, request_id="r" * LONGEST_NAME, verifier="v" * LONGEST_NAME)
    assert (status, reply["success"]) == (200, True)


async def test_a_defect_is_not_the_callers(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(endpoint.engine, "_core", None)
        status, reply = await post(endpoint.http, prefix=TEXT, request_id=7)
    assert (status, reply["draft_tokens"], reply["message"]) == (500, [], "a defect of the server; its log says more")
    assert await draft(endpoint, TEXT, max_draft_len=2) == [4, 5]


@pytest.mark.parametrize("missing", ["prefix", "request_id", "end_id", "max_sequence_length"])
async def test_what_the_engine_always_says_is_needed(missing: str, endpoint: Endpoint) -> None:
    fields = {"prefix": TEXT, "request_id": 7, "end_id": END, "max_sequence_length": 100}
    del fields[missing]
    response = await endpoint.http.post("/draft_tokens", json=fields)
    assert (response.status_code, response.json()["message"]) == (400, f"{missing}: Field required")


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff"])
async def test_a_body_that_is_no_object(body: bytes, endpoint: Endpoint) -> None:
    response = await endpoint.http.post("/draft_tokens", content=body)
    assert (response.status_code, response.json()["draft_tokens"]) == (400, [])
    assert "the body" in response.json()["message"]


async def test_a_server_that_is_not_ready_says_so(start: Start) -> None:
    endpoint = start(waiting_for=("corpora",))
    status, reply = await post(endpoint.http, prefix=TEXT, request_id=7)
    assert (status, reply["draft_tokens"]) == (503, [])
