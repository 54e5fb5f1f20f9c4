"""One malformed frame gets an error and a counter, nothing else."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils.monitor import recv_monitor_message

from draftd.engine import Engine
from draftd.wire import Error, Frame, HelloReply, Reason, Status, StepReply
from tests.contract.frames import commit_frame, hello_frame, sync_frame
from tests.contract.serving import (
    MAX_FRAME_BYTES,
    TRANSPORTS,
    Exchange,
    connected,
    grpc_connection,
    grpc_served,
    small_engine,
    zmq_connection,
    zmq_served,
)

VERIFIER = 7
TEXT = [1, 2, 3, 4, 1, 2]
GOOD = commit_frame(VERIFIER, step=9, start=len(TEXT), tokens=[3], max_nodes=2)


def with_columns(**columns: bytes) -> bytes:
    """GOOD with other commit columns."""
    frame = Frame.FromString(GOOD)
    for name, column in columns.items():
        setattr(frame.step.commit, name, column)
    return frame.SerializeToString()


BAD_FRAMES = {
    "cut off": GOOD[:-3],
    "noise": b"\xff\x00\xfe" * 50,
    "empty": b"",
    "an answer": Frame(reply=StepReply(step=1)).SerializeToString(),
    "a greeting of a drafter": Frame(hello_reply=HelloReply(protocol=1)).SerializeToString(),
    "an error": Frame(error=Error(status=Status.INTERNAL)).SerializeToString(),
    "step 0": commit_frame(VERIFIER, step=0, start=len(TEXT), tokens=[3], max_nodes=2),
    "a column one byte short": with_columns(start=b"\x00\x00\x00"),
    "a column one row short": with_columns(epoch=b""),
    "more tokens than the ends say": with_columns(tokens=bytes(40)),
    "an end beyond the tokens": with_columns(token_end=b"\xff\xff\xff\x7f"),
    "no max_nodes": with_columns(max_nodes=b""),
    "a bitmap without its ends": with_columns(bitmap=b"\x01"),
    "too long": with_columns(tokens=bytes(MAX_FRAME_BYTES)),
}


@pytest.fixture
def engine() -> Engine:
    return small_engine()


@pytest.fixture(params=TRANSPORTS)
def exchange(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[Exchange]:
    """A connection whose verifier has one request open."""
    with connected(request.param, engine, tmp_path) as exchange:
        exchange(hello_frame(VERIFIER))
        exchange(sync_frame(VERIFIER, step=1, prompt=TEXT))
        yield exchange


@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_a_bad_frame_gets_an_error_and_the_next_good_one_is_served(
    bad: str, exchange: Exchange, engine: Engine
) -> None:
    error = Frame.FromString(exchange(BAD_FRAMES[bad])).error
    assert error.status == (Status.LIMIT_EXCEEDED if bad == "too long" else Status.MALFORMED)
    assert error.message
    if bad == "too long":
        assert error.step == 9, "it could be read: somebody waits for the answer to that step"
    assert engine.statistics().frame_errors[Status(error.status).name] == 1
    reply = Frame.FromString(exchange(GOOD)).reply
    assert (reply.step, reply.tail.status, reply.tail.reason) == (9, bytes([Status.OK]), bytes([Reason.NOT_EMPTY]))


def test_an_unknown_verifier_is_asked_to_say_hello_for_that_step(exchange: Exchange) -> None:
    error = Frame.FromString(exchange(commit_frame(8, step=5, start=0, tokens=[1], max_nodes=1))).error
    assert (error.status, error.step) == (Status.NEED_HELLO, 5)


def test_another_version_of_the_protocol_is_refused_with_both(exchange: Exchange) -> None:
    hello = Frame.FromString(hello_frame(9))
    hello.hello.protocol = 2
    error = Frame.FromString(exchange(hello.SerializeToString())).error
    assert error.status == Status.UNSUPPORTED_VERSION
    assert "protocol 2" in error.message
    assert "speaks 1" in error.message


def test_fields_of_a_later_contract_are_skipped(exchange: Exchange) -> None:
    unknown_field = bytes([0xFA, 0x7F, 0x03]) + b"new"  # field 2047, three bytes
    reply = Frame.FromString(exchange(GOOD + unknown_field)).reply
    assert reply.tail.reason == bytes([Reason.NOT_EMPTY])


def test_a_message_of_several_parts_is_no_frame(engine: Engine, tmp_path: Path) -> None:
    with zmq_served(engine, tmp_path) as endpoint:
        with zmq.Context.instance().socket(zmq.DEALER) as socket:
            socket.connect(endpoint)
            socket.send_multipart([hello_frame(VERIFIER), hello_frame(VERIFIER)])
            assert socket.poll(30_000)
            assert Frame.FromString(socket.recv()).error.status == Status.MALFORMED
        with zmq_connection(endpoint) as exchange:
            assert Frame.FromString(exchange(hello_frame(VERIFIER))).hello_reply.protocol == 1


def test_a_frame_far_above_the_limit_ends_its_own_connection_only(engine: Engine, tmp_path: Path) -> None:
    far_too_long = bytes(3 * MAX_FRAME_BYTES)
    with zmq_served(engine, tmp_path) as endpoint, zmq_connection(endpoint) as other:
        with zmq.Context.instance().socket(zmq.DEALER) as socket, socket.get_monitor_socket() as monitor:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(endpoint)
            socket.send(far_too_long)
            while recv_monitor_message(monitor)["event"] != zmq.EVENT_DISCONNECTED:
                pass
            socket.disable_monitor()
        assert Frame.FromString(other(hello_frame(VERIFIER))).hello_reply.protocol == 1
    with grpc_served(engine, tmp_path) as endpoint, grpc_connection(endpoint) as other:
        with grpc_connection(endpoint) as exchange, pytest.raises(grpc.RpcError) as raised:
            exchange(far_too_long)
        assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED  # type: ignore[attr-defined]
        assert Frame.FromString(other(hello_frame(VERIFIER))).hello_reply.protocol == 1


@given(st.data())
def test_no_damage_to_a_frame_makes_the_engine_raise_or_forget_a_request(data: st.DataObject) -> None:
    engine = small_engine()
    engine.handle(hello_frame(VERIFIER))
    engine.handle(sync_frame(VERIFIER, step=1, prompt=TEXT, request=2))
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 8), "changes")):
        damaged[data.draw(st.integers(0, len(damaged) - 1), "position")] = data.draw(st.integers(0, 255), "byte")
    answer = Frame.FromString(engine.handle(bytes(damaged[: data.draw(st.integers(0, len(damaged)), "length")])).reply)
    assert answer.WhichOneof("body") in ("reply", "error", "hello_reply")
    frame = commit_frame(VERIFIER, step=10, start=len(TEXT), tokens=[3], max_nodes=2, request=2)
    reply = Frame.FromString(engine.handle(frame).reply).reply
    engine.close()
    assert reply.step == 10
