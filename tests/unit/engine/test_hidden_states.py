"""Hidden states in the server: columns that can't be meant, what is held until a source is asked, what it is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from draftd.client import Request, RequestStates
from draftd.client.local import LocalClient
from draftd.engine import Engine
from draftd.engine.hidden_states import REQUESTS_PART, HeldStates
from draftd.observe.facts import REGISTRY
from draftd.sources import Batch, Proposals
from draftd.sources.source import begins
from draftd.wire import PROTOCOL, Frame, Hello, HiddenStates, Namespace, Status
from tests.unit.engine.hybrid import NOTHING, ReadsStates, Scripted, hybrid

WIDTH = 3


def state(position: int, seed: int = 0) -> list[float]:
    """Different at every position, and the same as bfloat16."""
    return [float(position), float(seed), 1.0]


def states(first: int, end: int, seed: int = 0) -> RequestStates:
    return RequestStates(first, np.array([state(position, seed) for position in range(first, end)]))


def source() -> ReadsStates:
    (made,) = Scripted.made
    return cast("ReadsStates", made)


def seen(request: int = 1) -> dict[int, list[float]]:
    """By the source, of one request: by position."""
    return source().states.get(request, {})


def step(client: LocalClient, tokens: Mapping[Request, Sequence[int]], **options: Any) -> None:
    client.step(tokens, max_nodes=4, **options)


# What the source is shown


def test_a_client_learns_from_the_first_answer_whether_they_are_wanted() -> None:
    with hybrid(NOTHING, ReadsStates, tenant="reads") as (engine, client):
        assert not client.wants_hidden_states
        step(client, {client.open("r", [1, 2]): ()})
        assert not client.wants_hidden_states  # another tenant's
        with LocalClient(engine, Namespace(tenant="reads")) as other:
            step(other, {other.open("r", [1, 2]): ()})
            assert other.wants_hidden_states


def test_states_come_with_their_positions_and_each_row_has_its_own() -> None:
    with hybrid(NOTHING, ReadsStates) as (_, client):
        requests = [client.open(f"r{number}", [1] * (3 + number)) for number in range(3)]
        step(client, dict.fromkeys(requests, ()))
        hidden = {requests[0]: states(0, 4, 0), requests[2]: states(4, 6, 2)}
        step(client, dict.fromkeys(requests, (7, 8)), hidden=hidden)
    assert seen(1) == {position: state(position, 0) for position in range(4)}
    assert seen(2) == {}
    assert seen(3) == {position: state(position, 2) for position in (4, 5)}


def test_values_travel_as_bfloat16() -> None:
    values = np.random.default_rng(1).normal(size=(2, WIDTH)).astype(np.float32)
    with hybrid(NOTHING, ReadsStates) as (_, client):
        request = client.open("r", [1, 2, 3])
        step(client, {request: ()})
        step(client, {request: ()}, hidden={request: RequestStates(0, values)})
    assert [seen()[0], seen()[1]] == values.astype(bfloat16).astype(float).tolist()


def test_states_of_steps_in_which_it_is_not_asked_wait_for_the_next_in_which_it_is() -> None:
    with hybrid(NOTHING, ReadsStates) as (_, client):
        request = client.open("r", [1, 2, 3])
        step(client, {request: ()})
        for first in range(2, 8, 2):
            client.commit({request: (4, 5)}, hidden={request: states(first, first + 2)})
        assert REGISTRY.get_sample_value("draftd_hidden_state_bytes") == 6 * WIDTH * 2
        assert seen() == {}
        step(client, {request: ()})
        assert sorted(seen()) == [2, 3, 4, 5, 6, 7]
        assert REGISTRY.get_sample_value("draftd_hidden_state_bytes") == 0
        source().states.clear()
        step(client, {request: ()})
        assert seen() == {}  # it has them


def test_states_that_a_source_fails_for_do_not_come_again() -> None:
    """It would fail for them again, and for all requests that are asked for with that one."""
    with hybrid(NOTHING, FailsFor) as (_, client):
        request, other = client.open("r", [1, 2, 3]), client.open("other", [1, 2, 3])
        step(client, {request: (), other: ()})
        step(client, {request: (9,), other: ()}, hidden={request: states(FAILS, FAILS + 1)})
        assert REGISTRY.get_sample_value("draftd_hidden_state_bytes") == 0
        step(client, {request: (4,), other: (5,)}, hidden={request: states(3, 4), other: states(2, 3)})
        assert (sorted(seen(1)), sorted(seen(2))) == ([3], [2])


FAILS = 2


class FailsFor(ReadsStates):
    """States of one position."""

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        assert batch.hidden is not None
        if FAILS in batch.hidden.start[batch.hidden.end > begins(batch.hidden.end)][:1] and len(batch.request) == 2:
            raise RuntimeError("not this one")
        return super().propose(batch, budget)


def test_a_call_for_which_there_is_no_time_takes_no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    with hybrid(NOTHING, ReadsStates, milliseconds=1.0) as (engine, client):
        request = client.open("r", [1, 2, 3])
        step(client, {request: ()})
        (asked,) = (asked.guarded for asked in engine._fusion._sources._of.values() if asked)
        monkeypatch.setattr(asked, "nature", replace(ReadsStates.nature, row_micros=2000.0))
        step(client, {request: (4,)}, hidden={request: states(0, 3)})
        assert seen() == {}
        monkeypatch.setattr(asked, "nature", ReadsStates.nature)
        step(client, {request: ()})
        assert sorted(seen()) == [0, 1, 2]


def test_what_is_taken_back_takes_its_states_along() -> None:
    with hybrid(NOTHING, ReadsStates) as (_, client):
        request = client.open("r", [1, 2, 3])
        step(client, {request: ()})
        client.commit({request: (4, 5, 6)}, hidden={request: states(2, 5)})
        request.mirror.cut(4)  # as a verifier that takes tokens back states it
        client.commit({request: (7,)})
        step(client, {request: (8,)}, hidden={request: states(4, 5, seed=1)})
        assert {position: row[1] for position, row in seen().items()} == {2: 0.0, 3: 0.0, 4: 1.0}


def test_what_ends_before_its_source_is_asked_leaves_nothing() -> None:
    with hybrid(NOTHING, ReadsStates) as (_, client):
        request = client.open("r", [1, 2, 3])
        step(client, {request: ()})
        client.commit({request: (4,)}, hidden={request: states(0, 3)})
        assert REGISTRY.get_sample_value("draftd_hidden_state_bytes") == 3 * WIDTH * 2
        request.close()
        assert REGISTRY.get_sample_value("draftd_hidden_state_bytes") == 0


def test_a_source_that_needs_none_is_shown_none_and_nothing_is_held() -> None:
    with hybrid(NOTHING) as (engine, client):
        request = client.open("r", [1, 2, 3])
        step(client, {request: ()})
        assert not client.wants_hidden_states
        client._core.standing.wants_hidden_states = True  # it sends them all the same
        client.commit({request: (4,)}, hidden={request: states(0, 3)})
        assert REGISTRY.get_sample_value("draftd_hidden_state_bytes") == 0
        step(client, {request: (4,)}, hidden={request: states(0, 3)})
        assert [batch.hidden for batch in source().batches] == [None, None]
        assert engine._fusion._states.size == 0


# What can't be meant


def column(*numbers: int) -> bytes:
    return np.array(numbers, "<u4").tobytes()


VALUES = bytes(2 * 2 * WIDTH)  # of two states


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ({"width": 0}, "width is 0; 1 to 65536"),
        ({"width": 65537}, "width is 65537; 1 to 65536"),
        ({"start": column()}, "columns start and end do not have 1 entries, as request"),
        ({"end": column(1, 2)}, "columns start and end do not have 1 entries"),
        ({"values": VALUES[:-1]}, "values are 11 bytes; 2 states of 3 are 12"),
        ({"end": column(2**32 - 1)}, "values are 12 bytes; 4294967295 states of 3 are 25769803770"),
        ({"start": column(2)}, "row 0 has states of tokens that are not committed before its newest"),
        ({"start": column(2**32 - 1)}, "row 0 has states of tokens that are not committed before its newest"),
    ],
)
def test_columns_that_do_not_fit_are_refused_whole_with_the_place(hidden: dict[str, Any], words: str) -> None:
    with hybrid(NOTHING, ReadsStates) as (engine, _):
        frame, good = Frame(), {"start": column(1), "end": column(2), "width": WIDTH, "values": VALUES}
        error = answer(engine, frame, HiddenStates(**{**good, **hidden})).error
        assert (error.status, error.step) == (Status.MALFORMED, 5)
        assert error.message.startswith(f"commit: hidden: {words}")
        assert answer(engine, frame, HiddenStates(**good)).reply.step == 5
        assert answer(engine, frame, HiddenStates()).reply.step == 5


def answer(engine: Engine, frame: Frame, hidden: HiddenStates) -> Frame:
    """To a step whose only request is not open, after its text of four tokens."""
    hello = Hello(protocol=PROTOCOL, verifier="v", incarnation=1)
    engine.handle(Frame(hello=hello).SerializeToString())
    frame.step.verifier, frame.step.step = 1, 5
    commit = frame.step.commit
    commit.request, commit.epoch, commit.start, commit.token_end = column(1), column(1), column(3), column(1)
    commit.tokens, commit.tail_base, commit.verified = column(7), column(2**32 - 1), column(2**32 - 1)
    commit.max_nodes = b"\0\0"
    commit.hidden.CopyFrom(hidden)
    return Frame.FromString(engine.handle(frame.SerializeToString()).reply)


def test_rows_that_end_before_they_begin_are_refused() -> None:
    with hybrid(NOTHING, ReadsStates) as (engine, _):
        frame = Frame()
        commit = frame.step.commit
        answer(engine, frame, HiddenStates())
        for name in ("request", "epoch", "start", "tail_base", "verified"):
            setattr(commit, name, getattr(commit, name) * 2)
        commit.token_end, commit.max_nodes = column(1, 1), bytes(4)
        hidden = HiddenStates(start=column(0, 0), end=column(3, 2), width=WIDTH, values=VALUES)
        commit.hidden.CopyFrom(hidden)
        error = Frame.FromString(engine.handle(frame.SerializeToString()).reply).error
    assert error.message == "commit: hidden: row 1 ends before it begins"


# What is held

REQUESTS = (1, 2)
puts = st.tuples(
    st.sampled_from(REQUESTS),
    st.integers(0, 12),  # unchanged
    st.integers(0, 12),  # start
    st.integers(0, 4),  # states
)


@given(st.lists(st.one_of(puts, st.sampled_from(REQUESTS)), max_size=20))
def test_what_is_held_is_the_newest_without_gaps(events: list[tuple[int, int, int, int] | int]) -> None:
    """Against a table from positions to values."""
    held = HeldStates()
    twin: dict[int, dict[int, float]] = {request: {} for request in REQUESTS}
    for number, event in enumerate(events):
        if isinstance(event, int):
            held.drop([event])
            twin[event] = {}
            continue
        request, unchanged, start, count = event
        held.put(request, unchanged, start, np.full((count, WIDTH), number, bfloat16))
        table = {position: value for position, value in twin[request].items() if position < unchanged}
        if count:
            table = {position: value for position, value in table.items() if position < start}
            if table and max(table) != start - 1:
                table = {}
            table |= dict.fromkeys(range(start, start + count), float(number))
        twin[request] = table
    columns = held.of(REQUESTS)
    for request, start, (first, end) in zip(
        REQUESTS, columns.start.tolist(), pairwise([0, *columns.end.tolist()]), strict=True
    ):
        values = columns.values[first:end, :1].astype(float).ravel().tolist()
        assert dict(enumerate(values, start)) == twin[request]
    assert held.size == sum(len(table) for table in twin.values()) * WIDTH * 2
    parts = [part for of_request in held._of.values() for part in of_request.parts]
    assert sum(part.nbytes for part in parts) == held.size
    assert all(part.base is None for part in parts)  # a view would hold more than it says
    held.clear()


def test_requests_that_brought_none_for_long_lose_theirs_first() -> None:
    held = HeldStates(most_bytes=8 * WIDTH * 2)
    for request in range(4):
        put(held, request, 0, 2)
    held.put(1, 10, 0, np.zeros((0, WIDTH), bfloat16))  # brings none
    put(held, 0, 2, 0)  # nor does this
    put(held, 4, 0, 1)
    assert held.of(range(5)).end.tolist() == [0, 2, 4, 6, 7]
    put(held, 1, 1, 1)  # one again: now it is the newest
    put(held, 5, 0, 2)
    assert held.of(range(6)).end.tolist() == [0, 2, 2, 4, 5, 7]
    held.clear()


def test_of_one_request_only_the_newest_are_held() -> None:
    held = HeldStates(most_bytes=REQUESTS_PART * 5 * WIDTH * 2)
    put(held, 1, 0, 2)
    for start in range(10, 20, 3):
        put(held, 2, start, 3)
    columns = held.of([1, 2])
    assert (columns.start.tolist(), columns.end.tolist()) == ([0, 17], [2, 7])
    assert columns.values[2:, 0].astype(float).tolist() == [17.0, 18.0, 19.0, 20.0, 21.0]
    assert all(part.base is None for part in held._of[2].parts)
    held.clear()


def put(held: HeldStates, request: int, start: int, count: int) -> None:
    positions = np.arange(start, start + count).reshape(-1, 1)
    held.put(request, start, start, np.repeat(positions, WIDTH, axis=1).astype(bfloat16))


def test_rows_of_another_width_have_none() -> None:
    held = HeldStates()
    for request, width in ((1, 3), (2, 4), (3, 3)):
        held.put(request, 0, 5, np.ones((2, width), bfloat16))
    columns = held.of([9, 1, 2, 3])
    assert (columns.end.tolist(), columns.values.shape) == ([0, 2, 2, 4], (4, 3))
    assert held.of([2]).values.shape == (2, 4)
    held.put(1, 7, 7, np.ones((1, 4), bfloat16))  # the verifier changed its mind
    assert held.of([1]).values.shape == (1, 4)
    held.clear()
