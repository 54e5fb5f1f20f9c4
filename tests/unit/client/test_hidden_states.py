"""Hidden states at the client: what can't be meant, what of them a frame takes, and how each verb sends them."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from draftd.client import AsyncClient, Client, RequestStates, ring_channel
from draftd.client.hidden_states import states_bytes, states_of_rows
from draftd.client.limits import Limits
from draftd.client.mirror import Mirror
from draftd.client.rows import ROW_BYTES, Rows, Wish
from draftd.config import EngineSettings, SourceSettings
from draftd.engine import Engine
from draftd.wire import DraftSync, StepReply
from tests.contract.serving import grpc_served, ring_served, zmq_served
from tests.faults.process import until
from tests.unit.client.conversation import Conversation
from tests.unit.engine.hybrid import NOTHING, ReadsStates, Scripted, hybrid, registered

PATIENT = 30.0
Served = Callable[[Engine, Path], AbstractContextManager[str]]


def some(start: int, count: int, width: int = 4) -> RequestStates:
    return RequestStates(start, np.arange(count * width, dtype=np.float32).reshape(count, width))


@pytest.mark.parametrize(
    ("start", "values", "words"),
    [
        (0, np.zeros(4), "hidden states are [4]; give [states, 1 to 65536 values]"),
        (0, np.zeros((2, 0)), "hidden states are [2, 0]"),
        (0, np.zeros((1, 65537), bfloat16), "hidden states are [1, 65537]"),
        (0, np.zeros((1, 2), int), "hidden states are of int64; give floating-point numbers"),
        (-1, np.zeros((1, 2)), "1 hidden states start at position -1; a text has 2^32 of them, from 0 on"),
        (2**32 - 1, np.zeros((2, 2)), "2 hidden states start at position 4294967295"),
        (1.5, np.zeros((1, 2)), "start is 1.5; give a whole number"),
    ],
)
def test_what_are_no_states_is_an_error_that_says_why(start: Any, values: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        RequestStates(start, values)


def test_states_of_one_step_have_one_width() -> None:
    with pytest.raises(ValueError, match="hidden states of one step are 3 and 4 wide; give all the same width"):
        states_of_rows({"a": some(0, 1, 4), "b": some(0, 1, 3)}, ["a", "none", "b"])
    assert states_of_rows({"b": some(0, 0, 3)}, ["a", "b"]) is None


def test_what_a_request_has_are_its_states() -> None:
    with pytest.raises(ValueError, match="hidden states of a request are ndarray; give RequestStates"):
        states_of_rows({"a": np.zeros((1, 2))}, ["a"])  # type: ignore[dict-item]


def test_what_is_too_large_becomes_infinite(recwarn: pytest.WarningsRecorder) -> None:
    assert np.isinf(RequestStates(0, np.array([[1e300]])).values).all()
    assert not recwarn


def test_they_read_as_positions_and_width() -> None:
    assert repr(some(7, 3, 4)) == "RequestStates(positions 7 to 9, 4 wide)"


def test_the_newest_are_what_fits() -> None:
    states = some(5, 10)
    assert [(kept.start, len(kept.values)) for kept in map(states.newest, (1000, 80, 79, 8, 7, 0, -5))] == [
        (5, 10),
        (5, 10),
        (6, 9),
        (14, 1),
        (15, 0),
        (15, 0),
        (15, 0),
    ]
    assert states.newest(16).values.tolist() == states.values[-2:].tolist()


def test_parts_of_a_step_take_their_states_along_and_are_cut_by_them() -> None:
    mirrors = [Mirror(DraftSync(request=number), b"") for number in range(6)]
    hidden = [some(0, number) if number % 2 else None for number in range(6)]
    whole = Rows(mirrors, [[number] for number in range(6)], hidden=hidden)
    assert whole.size == 6 * (ROW_BYTES + 4) + sum(map(states_bytes, hidden))
    limits = Limits(frame_bytes=4096 + 3 * (ROW_BYTES + 4))
    parts = whole.parts(limits)
    assert [states for part in parts for states in part.hidden or ()] == hidden
    assert all(part.size <= limits.payload_bytes or len(part.mirrors) == 1 for part in parts)
    assert len(parts) > 2
    assert [states for part in parts for states in part.without_tokens().hidden or ()] == hidden  # nobody has them yet


# In conversation


@pytest.fixture
def engine() -> Iterator[Engine]:
    with registered(NOTHING, ReadsStates):
        engine = Engine(EngineSettings(), sources=[SourceSettings(name="scripted", milliseconds=5000)])
        yield engine
        engine.close()


@pytest.fixture
def talk(engine: Engine) -> Conversation:
    talk = Conversation()
    talk.engine.close()
    talk.engine = engine
    return talk


def source() -> Scripted:
    return Scripted.made[-1]


def positions() -> list[int]:
    """That the source has, of all requests."""
    made = source()
    assert isinstance(made, ReadsStates)
    return sorted(position for states in made.states.values() for position in states)


def commit(talk: Conversation, mirror: Mirror, tokens: list[int], states: RequestStates) -> None:
    for outgoing in talk.core.post(Rows([mirror], [tokens], hidden=[states])):
        for frame in outgoing.frames:
            talk.send(frame)


def test_of_a_row_that_is_too_long_the_newest_go_and_its_tokens_too(talk: Conversation) -> None:
    talk.engine.close()
    talk.engine = Engine(
        EngineSettings(max_frame_bytes=1 << 16), sources=[SourceSettings(name="scripted", milliseconds=5000)]
    )
    mirror = talk.open()
    talk.step(mirror)
    commit(talk, mirror, [1] * 300, some(0, 307, width=256))
    assert talk.longest_frame <= 1 << 16
    talk.step(mirror)
    assert talk.core.standing.counters.syncs == 1  # the tokens were committed, not told anew
    room = (1 << 16) - 4096 - ROW_BYTES - 4 * 300
    assert positions() == list(range(307 - room // 512, 307))


def test_states_of_tokens_that_are_not_there_are_left_out_and_health_says_so(talk: Conversation) -> None:
    mirror = talk.open(prompt=[1, 2, 3])
    talk.step(mirror)
    commit(talk, mirror, [4], some(0, 4))  # the newest token's, too
    talk.step(mirror)
    assert positions() == []
    assert talk.core.standing.health(closed=False).last_refusal == (
        "request 'r': hidden states are left out: they are of positions up to 3; of 4 tokens the newest is at 2"
    )
    commit(talk, mirror, [5], some(0, 4))
    talk.step(mirror)
    assert positions() == [0, 1, 2, 3]


def test_a_drafter_that_knows_nobody_is_given_them_once_more(talk: Conversation) -> None:
    mirror = talk.open(prompt=[1, 2, 3])
    talk.step(mirror)
    talk.engine = Engine(EngineSettings(), sources=[SourceSettings(name="scripted", milliseconds=5000)])
    exchange = talk.core.exchange(Rows([mirror], [[4]], hidden=[some(2, 1)]), Wish(2))
    again = exchange.send(talk.round_trip(next(exchange)))
    assert isinstance(talk.round_trip(again), StepReply)
    assert positions() == [2]


def test_nobody_is_sent_what_nobody_reads_but_what_can_not_be_meant_is_an_error() -> None:
    with hybrid(NOTHING) as (_, client):
        request, other = client.open("r", [1, 2, 3]), client.open("other", [1, 2, 3])
        client.step({request: (), other: ()})
        client.step({request: (4,)}, hidden={request: some(0, 2)})
        assert source().batches[-1].hidden is None
        with pytest.raises(ValueError, match="give all the same width"):
            client.step({request: (), other: ()}, hidden={request: some(0, 1, 3), other: some(0, 1, 4)})


def test_messages_longer_than_the_ring_go_through_it_one_after_the_other(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 MiB each, without waiting for answers: what the ring does not take goes with the next call."""
    monkeypatch.setattr(ring_channel, "SECONDS_PER_BYTE", 1e-5)  # a machine that has other things to do takes its time
    width, count, steps = 16384, 128, 12
    with (
        ring_served(engine, tmp_path, max_frame_bytes=64 << 20) as endpoint,
        Client(endpoint, deadline=PATIENT) as client,
    ):
        assert client.check(PATIENT).state == "serving"
        request = client.open("r", [1] * 10_000)
        for step in range(steps):
            states = RequestStates(step * count, np.zeros((count, width), bfloat16))
            client.step_ahead({request: (1,)}, hidden={request: states})
            until(lambda before=step: len(Scripted.made[0].asked) >= before)  # as a pass of the target takes time
        client.step({request: ()})
        counters = client.health().counters
        assert (counters.unreachable, counters.late) == (0, 0)
        assert positions() == list(range(steps * count))


def test_states_that_come_before_the_drafters_first_word_was_looked_at_are_sent() -> None:
    """It came while the target read the prompt."""
    with hybrid(NOTHING, ReadsStates) as (_, client):
        request = client.open("r", [1, 2, 3])
        assert not client.wants_hidden_states
        client.step({request: (4,)}, hidden={request: some(0, 3)})
        assert positions() == [0, 1, 2]


# Over every transport, by every verb


@pytest.mark.parametrize("served", [ring_served, zmq_served, grpc_served])
def test_a_client_sends_them(served: Served, engine: Engine, tmp_path: Path) -> None:
    with served(engine, tmp_path) as endpoint, Client(endpoint, deadline=PATIENT) as client:
        request, gone = client.open("r", [1, 2, 3]), client.open("gone", [1, 2, 3])
        gone.close()
        assert client.check(PATIENT).state == "serving"
        client.step({request: (4,)}, hidden={request: some(0, 3)})
        client.step({request: (5,), gone: ()}, hidden={request: some(3, 1), gone: some(0, 1)})
        client.commit({request: (6,)}, hidden={request: some(4, 1)})
        client.step_ahead({request: (7,)}, hidden={request: some(5, 1)})
        client.step({request: ()})
        assert positions() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("served", [zmq_served, grpc_served])
async def test_a_client_of_an_event_loop_sends_them(served: Served, engine: Engine, tmp_path: Path) -> None:
    with served(engine, tmp_path) as endpoint:
        async with AsyncClient(endpoint, deadline=PATIENT) as client:
            request = await client.open("r", [1, 2, 3])
            await client.step({request: ()})
            assert client.wants_hidden_states
            await client.step({request: (4,)}, hidden={request: some(0, 3)})
            await client.commit({request: (5,)}, hidden={request: some(3, 1)})
            await client.step_ahead({request: (6,)}, hidden={request: some(4, 1)})
            await client.step({request: ()})
            assert positions() == [0, 1, 2, 3, 4]
