"""Rule 10: a tokenizer or vocabulary other than the model's is refused at open, with both in the message."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from draftd.client import AsyncClient, Client, Namespace, Reason, Status
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import Frame, Hello
from tests.contract.serving import TRANSPORTS, connected, grpc_served, ring_served, zmq_served

TEXT = [1, 2, 3, 4, 1, 2]
OURS, OTHER = "0f" * 32, "a1" * 32
IDS = 1000
PATIENT = 30.0


@pytest.fixture
def engine() -> Engine:
    engine = Engine(EngineSettings())
    engine.know_tokenizer("acme", "llama", OURS, IDS)
    return engine


@contextmanager
def client_of(transport: str, engine: Engine, directory: Path, **stated: object) -> Iterator[Client]:
    served = {"ring": ring_served, "zmq": zmq_served, "grpc": grpc_served}[transport]
    namespace = Namespace("acme", "llama", stated.get("tokenizer"))  # type: ignore[arg-type]
    size = int(stated.get("vocabulary_size", 0))  # type: ignore[call-overload]
    with (
        served(engine, directory) as endpoint,
        Client(endpoint, namespace, deadline=PATIENT, vocabulary_size=size) as client,
    ):
        yield client


@pytest.mark.parametrize("transport", ["ring", "zmq", "grpc"])
@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"tokenizer": OTHER}, [OURS, OTHER]),
        ({"tokenizer": OTHER, "vocabulary_size": IDS}, [OURS, OTHER]),
        ({"tokenizer": OURS, "vocabulary_size": IDS + 1}, [OURS, str(IDS), str(IDS + 1)]),
    ],
    ids=["another tokenizer", "another tokenizer of the same size", "another vocabulary size"],
)
def test_a_mismatch_is_refused_with_both_sides(
    transport: str, stated: dict[str, object], words: list[str], engine: Engine, tmp_path: Path
) -> None:
    with client_of(transport, engine, tmp_path, **stated) as client:
        assert client.check(PATIENT).last_error.startswith("TOKENIZER_MISMATCH"), "known before anything is opened"
        request = client.open("r", TEXT, wait=True)
        draft = request.step([3], budget=2)
        assert (draft.reason, draft.status) == (Reason.REFUSED, Status.TOKENIZER_MISMATCH)
        assert request.refused == Status.TOKENIZER_MISMATCH
        health = client.health()
        assert health.last_error.startswith("request 'r': TOKENIZER_MISMATCH: ")
        assert all(word in health.last_error for word in words), health.last_error
        assert (health.drafter_tokenizer, health.drafter_vocabulary_size) == (OURS, IDS)
        assert engine.statistics().row_errors["TOKENIZER_MISMATCH"] == 1


@pytest.mark.parametrize("transport", ["ring", "zmq", "grpc"])
@pytest.mark.parametrize(
    "stated",
    [
        {"tokenizer": OURS},
        {"tokenizer": OURS, "vocabulary_size": IDS},
        {},
        {"vocabulary_size": IDS + 1},  # without a tokenizer: a namespace of its own, which works on ids
    ],
    ids=str,
)
def test_what_agrees_or_states_no_tokenizer_is_served(
    transport: str, stated: dict[str, object], engine: Engine, tmp_path: Path
) -> None:
    with client_of(transport, engine, tmp_path, **stated) as client:
        assert client.open("r", TEXT).draft(1).tokens.tolist() == [3]
        health = client.health()
        assert health.last_error == ""
        assert (health.tokenizer, health.vocabulary_size) == (
            stated.get("tokenizer"),
            stated.get("vocabulary_size", 0),
        )


def test_what_states_no_tokenizer_shares_nothing_with_what_does(engine: Engine, tmp_path: Path) -> None:
    with client_of("zmq", engine, tmp_path, tokenizer=OURS) as stating:
        request = stating.open("r", [7, 8, 9])
        request.commit([10, 11])
        request.close()
        assert 11 in stating.open("s", [10], wait=True).draft(4).tokens.tolist()
    with client_of("zmq", engine, tmp_path) as silent:
        assert 11 not in silent.open("s", [10], wait=True).draft(4).tokens.tolist()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("tenant", "model", "known"), [("acme", "llama", (OURS, IDS)), ("acme", "qwen", ("", 0)), ("", "", ("", 0))]
)
def test_the_greeting_is_answered_with_the_tokenizer_of_the_model_it_names(
    transport: str, tenant: str, model: str, known: tuple[str, int], engine: Engine, tmp_path: Path
) -> None:
    hello = Frame(hello=Hello(protocol=1, incarnation=7, tenant=tenant, model=model)).SerializeToString()
    with connected(transport, engine, tmp_path) as exchange:
        reply = Frame.FromString(exchange(hello)).hello_reply
    assert (reply.tokenizer, reply.vocabulary_size) == known


async def test_an_async_client_greets_with_the_same(engine: Engine, tmp_path: Path) -> None:
    with zmq_served(engine, tmp_path) as endpoint:
        async with AsyncClient(endpoint, Namespace("acme", "llama", OTHER), vocabulary_size=5) as client:
            health = await client.check(PATIENT)
    assert (health.tokenizer, health.vocabulary_size, health.drafter_tokenizer) == (OTHER, 5, OURS)
    assert OURS in health.last_error
    assert OTHER in health.last_error
