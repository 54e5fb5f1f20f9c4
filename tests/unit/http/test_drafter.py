"""TensorRT-LLM's external drafter: what its APIDrafter posts and gets, over real HTTP where it matters."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.client.mirrors import CLOSES_PER_STEP
from draftd.transport import http_body, http_drafter
from draftd.transport.http_app import Admin, admin_app
from draftd.transport.http_server import HttpServer
from tests.unit.http.conftest import Endpoint, Start
from tests.unit.http.test_status import samples

PAGE = Path(__file__).parents[3] / "docs" / "http.md"
END = 99
TEXT = [1, 2, 3, 4, 5, 6, 1, 2, 3]  # goes on with 4, 5, 6, 1, 2, 3


async def draft(endpoint: Endpoint, prefix: Sequence[int], request_id: int | str = 7, **fields: Any) -> list[int]:
    status, reply = await post(endpoint.http, prefix=prefix, request_id=request_id, **fields)
    assert status == 200, reply
    tokens: list[int] = reply["draft_tokens"]
    return tokens


async def post(http: httpx.AsyncClient, url: str = "/draft_tokens", **fields: Any) -> tuple[int, dict[str, Any]]:
    """What APIDrafter.get_draft_tokens does."""
    response = await http.post(url, content=json.dumps({"end_id": END, "max_sequence_length": 1000} | fields))
    return response.status_code, response.json()


def indexed(endpoint: Endpoint) -> None:
    """On return, what was closed before is in the histories."""
    with LocalClient(endpoint.engine, Namespace(tenant="nobody")) as client:
        client.open("sign", [1], wait=True).close()


def rule(text: Sequence[int]) -> int:
    """The target's greedy choice: texts repeat themselves soon, and end."""
    return END if len(text) == 60 else (text[-1] + 2 * text[-2] + 1) % 7


@pytest.fixture
async def served(endpoint: Endpoint) -> AsyncIterator[str]:
    """The URL that a user gives TensorRT-LLM."""
    admin = Admin(endpoint.engine, endpoint.loads, endpoint.readiness, None)  # type: ignore[arg-type]
    server = HttpServer(admin_app(admin), "127.0.0.1:0", shutdown_seconds=1)
    yield f"{await server.start()}/draft_tokens"
    await server.stop()


async def test_requests_of_an_engine_over_http(served: str, endpoint: Endpoint) -> None:
    """As TensorRT-LLM runs them: all requests of a step at once, each over a connection of its own; drafts padded with
    the end id, and verified whole."""
    most = 6
    accepted = 0

    async def asked(number: int, text: list[int]) -> list[int]:
        async with httpx.AsyncClient() as http:
            status, reply = await post(
                http,
                served,
                prefix=text,
                request_id=number,
                max_sequence_length=60,
                max_draft_len=most,
                tenant="acme",
                model="m",
            )
        assert status == 200, reply
        tokens: list[int] = reply["draft_tokens"]
        assert len(tokens) <= most
        return tokens

    prompts = [[n, n + 1] for n in range(5)]
    texts = [[*prompt, rule(prompt)] for prompt in prompts]
    while running := [number for number, text in enumerate(texts) if text[-1] != END]:
        drafts = await asyncio.gather(*(asked(number, texts[number]) for number in running))
        for number, tokens in zip(running, drafts, strict=True):
            for token in [*tokens, *[END] * (most - len(tokens))]:
                texts[number].append(rule(texts[number]))
                if texts[number][-1] != token or token == END:
                    break
                accepted += 1
            else:
                texts[number].append(rule(texts[number]))
    for prompt, text in zip(prompts, texts, strict=True):
        plain = list(prompt)
        while plain[-1] != END:
            plain.append(rule(plain))
        assert text == plain
    told = await samples(endpoint)
    last_steps = accepted - told["draftd_spec_decode_num_accepted_tokens_total", ""]
    assert 0 <= last_steps <= len(prompts) * most, "only the last step of a request is not told"
    assert accepted > 100
    assert told["draftd_sessions", ""] == len(prompts)


async def test_the_example_of_the_page_is_what_is_answered(endpoint: Endpoint) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Drafts for TensorRT-LLM")[2]
    question, answer = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)[:2])
    assert await post(endpoint.http, **question) == (200, answer)


async def test_what_extends_a_prefix_is_a_commit(endpoint: Endpoint) -> None:
    assert await draft(endpoint, TEXT, max_draft_len=3) == [4, 5, 6]
    assert await draft(endpoint, [*TEXT, 4, 5, 9], max_draft_len=3) == []
    told = await samples(endpoint)
    assert told["draftd_sessions", ""] == 1
    assert told["draftd_spec_decode_num_draft_tokens_total", ""] == 3
    assert told["draftd_spec_decode_num_accepted_tokens_total", ""] == 2


async def test_what_disagrees_is_drafted_as_if_it_were_new(endpoint: Endpoint) -> None:
    await draft(endpoint, [7, 8, 9, 7, 8])
    assert await draft(endpoint, TEXT, max_draft_len=4) == [4, 5, 6, 1]
    assert await draft(endpoint, TEXT[:-1], max_draft_len=4) == [3, 4, 5, 6]
    assert (await samples(endpoint))["draftd_sessions", ""] == 1


async def test_an_id_that_is_known_to_nobody_is_as_good(start: Start) -> None:
    """After a restart of the drafter, the engine goes on."""
    before, after = start(), start()
    text = list(TEXT)
    for token in (4, 5, 6):
        await draft(before, text)
        text.append(token)
    assert await draft(before, text, max_draft_len=6) == await draft(after, text, max_draft_len=6) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("end_id", "expected"), [(5, [4, 5]), (None, [4, 5, 6, 1]), (-1, [4, 5, 6, 1])])
async def test_nothing_is_drafted_below_the_end_id(end_id: int | None, expected: list[int], endpoint: Endpoint) -> None:
    assert await draft(endpoint, TEXT, end_id=end_id, max_draft_len=4) == expected


@pytest.mark.parametrize(("room", "expected"), [(3, [4, 5]), (2, [4]), (1, []), (0, []), (-4, [])])
async def test_a_draft_leaves_room_for_the_targets_own_token(
    room: int, expected: list[int], endpoint: Endpoint
) -> None:
    assert await draft(endpoint, TEXT, max_sequence_length=len(TEXT) + room) == expected


@pytest.mark.parametrize("room", [1, 0])
async def test_what_was_not_returned_is_not_counted(room: int, endpoint: Endpoint) -> None:
    """Though the target emits just what would have been drafted."""
    _, reply = await post(endpoint.http, prefix=TEXT, request_id=7, max_sequence_length=len(TEXT) + room)
    assert reply == {"success": True, "draft_tokens": [], "reason": "NOT_ASKED"}
    await draft(endpoint, [*TEXT, 4])
    told = await samples(endpoint)
    assert told["draftd_spec_decode_num_draft_tokens_total", ""] == 0
    assert told["draftd_spec_decode_num_accepted_tokens_total", ""] == 0


async def test_an_empty_draft_says_why(endpoint: Endpoint) -> None:
    _, reply = await post(endpoint.http, prefix=[1, 2, 3], request_id=1)
    assert reply == {"success": True, "draft_tokens": [], "reason": "NO_MATCH"}


async def test_the_same_id_of_two_engines_is_two_requests(endpoint: Endpoint) -> None:
    for _ in range(2):
        assert await draft(endpoint, TEXT, verifier="a", max_draft_len=1) == [4]
        assert await draft(endpoint, [7, 8, 9, 7], verifier="b", max_draft_len=1) == [8]
        assert await draft(endpoint, [5, 8, 9, 5], tenant="other", max_draft_len=1) == [8]
    assert (await samples(endpoint))["draftd_sessions", ""] == 3


async def test_names_with_a_slash_are_not_mixed_up(endpoint: Endpoint) -> None:
    pairs = [("a/b", "c"), ("a", "b/c"), ("", "a/b/c"), ("a%2Fb", "c")]
    texts = [[10 * number, 10 * number + 1, 10 * number] for number in range(len(pairs))]
    for text, (verifier, request_id) in zip(texts, pairs, strict=True):
        assert await draft(endpoint, text, request_id, verifier=verifier, max_draft_len=1) == [text[1]]
    for text, (verifier, request_id) in zip(texts, pairs, strict=True):
        await draft(endpoint, [*text, text[1]], request_id, verifier=verifier)
    told = await samples(endpoint)
    assert told["draftd_sessions", ""] == len(pairs)
    assert told["draftd_spec_decode_num_accepted_tokens_total", ""] == len(pairs)


async def test_nothing_of_another_namespace_is_drafted(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_drafter, "OVER_AFTER", 0.0)
    await draft(endpoint, [1, 2], 1, tenant="acme")
    await draft(endpoint, [1, 2, 3, 4, 5, 6], 1, tenant="acme")
    await draft(endpoint, [8], 2, tenant="acme")
    indexed(endpoint)
    assert await draft(endpoint, [3, 4], 3, tenant="acme", max_draft_len=2) == [5, 6]
    for other in ({"tenant": "b"}, {"model": "m"}, {"adapter": "a"}, {"tokenizer": "f1"}):
        assert await draft(endpoint, [3, 4], 3, **{"tenant": "acme"} | other) == []


async def test_who_is_not_heard_of_has_finished(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output is drafted from, and it may come again all the same."""
    for number in (1, 2, 3):
        await draft(endpoint, TEXT, number)
    assert (await samples(endpoint))["draftd_sessions", ""] == 3
    monkeypatch.setattr(http_drafter, "OVER_AFTER", 0.0)
    assert await draft(endpoint, [*TEXT, 4], 1, max_draft_len=2) == [5, 6]
    assert (await samples(endpoint))["draftd_sessions", ""] == 1
    assert await draft(endpoint, [*TEXT, 4, 5], 2, max_draft_len=2) == [6, 1]


async def test_a_namespace_that_is_not_heard_of_has_finished(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its texts are kept for nobody, and drafted from when it comes again."""
    await draft(endpoint, [1, 2], tenant="acme")
    await draft(endpoint, [1, 2, 3, 4, 5, 6], tenant="acme")
    monkeypatch.setattr(http_drafter, "OVER_AFTER", 0.0)
    await draft(endpoint, [8], tenant="other")
    assert (await samples(endpoint))["draftd_sessions", ""] == 1
    indexed(endpoint)
    assert await draft(endpoint, [3, 4], 3, tenant="acme", max_draft_len=2) == [5, 6]


async def test_all_requests_of_a_namespace_finish_with_it(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also more than one message has closes."""
    monkeypatch.setattr(http_drafter, "MOST_NAMESPACES", 1)
    for number in range(CLOSES_PER_STEP + 1):
        await draft(endpoint, TEXT, number, tenant="acme")
    await draft(endpoint, TEXT, tenant="other")
    assert (await samples(endpoint))["draftd_sessions", ""] == 1


async def test_what_is_refused_takes_no_place(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_drafter, "MOST_REQUESTS", 2)
    await draft(endpoint, TEXT, max_draft_len=1)
    for letter in "ab":
        assert (await post(endpoint.http, prefix=TEXT, request_id=300 * letter))[0] == 400
    await draft(endpoint, [*TEXT, 4])
    assert (await samples(endpoint))["draftd_spec_decode_num_accepted_tokens_total", ""] == 1


async def test_requests_and_namespaces_are_bounded(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_drafter, "MOST_REQUESTS", 2)
    monkeypatch.setattr(http_drafter, "MOST_NAMESPACES", 2)
    for tenant in "abc":
        for number in range(5):
            await draft(endpoint, TEXT, number, tenant=tenant)
    assert (await samples(endpoint))["draftd_sessions", ""] <= 4


async def test_the_namespace_longest_not_asked_for_goes_first(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_drafter, "MOST_NAMESPACES", 2)
    for tenant in ("old", "other", "old", "new"):
        assert await draft(endpoint, TEXT, tenant=tenant, max_draft_len=1) == [4]
    await draft(endpoint, [*TEXT, 4], tenant="old")
    assert (await samples(endpoint))["draftd_spec_decode_num_accepted_tokens_total", ""] == 1, "it was kept"


async def test_requests_at_once_are_taken_in_turns(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have come when their namespace's client is made: one is, and the others wait for it."""
    most = 6
    bodies: list[bytes] = []
    all_came = threading.Event()

    async def small_body(*arguments: Any) -> bytes:
        bodies.append(await http_body.small_body(*arguments))
        if len(bodies) == most:
            all_came.set()
        return bodies[-1]

    class MadeLate(LocalClient):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            assert all_came.wait(30)
            super().__init__(*arguments, **keywords)

    monkeypatch.setattr(http_drafter, "small_body", small_body)
    monkeypatch.setattr(http_drafter, "LocalClient", MadeLate)
    for text, expected in ((TEXT, [4]), ([*TEXT, 4], [5])):
        drafts = [draft(endpoint, text, number, max_draft_len=1) for number in range(most)]
        assert await asyncio.gather(*drafts) == most * [expected]
    told = await samples(endpoint)
    assert told["draftd_sessions", ""] == told["draftd_spec_decode_num_accepted_tokens_total", ""] == most
