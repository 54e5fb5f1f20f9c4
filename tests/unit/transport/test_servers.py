"""What both frame servers promise about addresses, waiting and stopping."""

import socket
import stat
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import grpc
import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from draftd.client import Client, Reason
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.transport.grpc_server import GrpcServer
from draftd.transport.zmq_server import ZmqServer
from tests.contract.serving import grpc_served, ring_served, zmq_served

PATIENT = 60.0  # seconds; only a test that fails waits that long
Served = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def engine() -> Engine:
    return Engine(EngineSettings())


@pytest.fixture(params=[ring_served, zmq_served, grpc_served], ids=["ring", "zmq", "grpc"])
def served(request: pytest.FixtureRequest) -> Served:
    found: Served = request.param
    return found


def test_a_socket_file_is_for_its_owner_and_group_and_goes_with_its_server(
    served: Served, engine: Engine, tmp_path: Path
) -> None:
    with served(engine, tmp_path):
        (path,) = tmp_path.glob("*.sock*")
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert not path.exists()


def test_a_socket_in_use_is_refused_and_keeps_working(served: Served, engine: Engine, tmp_path: Path) -> None:
    with served(engine, tmp_path) as endpoint:
        with pytest.raises(OSError, match="Address already in use"), served(engine, tmp_path):
            pass
        with Client(endpoint, deadline=PATIENT) as client:
            assert client.check(PATIENT).state == "serving"


def test_an_answer_that_waits_for_indexing_is_given_before_the_end(
    served: Served, engine: Engine, tmp_path: Path
) -> None:
    long_prompt = np.random.default_rng(1).integers(0, 1_000, 1_000_000).astype(np.int32)
    with served(engine, tmp_path, drain=PATIENT, max_frame_bytes=1 << 24) as endpoint:
        client = Client(endpoint, deadline=PATIENT)
        opening = threading.Thread(target=lambda: client.open("long", long_prompt, wait=True))
        opening.start()
        while engine.statistics().sessions == 0:
            pass
    opening.join()
    with client:
        assert client.health().counters.steps == 1


def test_steps_while_the_last_answers_wait_are_refused_at_once(engine: Engine, tmp_path: Path) -> None:
    server = ZmqServer(engine, f"ipc://{tmp_path}/zmq.sock", max_frame_bytes=1 << 24)
    server.start()
    with Client(server.endpoint, deadline=PATIENT) as client:
        request = client.open("r", [1, 2, 3, 1, 2], wait=True)
        stopping = threading.Thread(target=server.stop, args=(PATIENT,))
        stopping.start()
        while (draft := request.draft(2)).reason == Reason.NOT_EMPTY:
            pass
        assert draft.reason == Reason.UNREACHABLE
        assert client.health().last_error == "SHUTTING_DOWN: the drafter is shutting down"
        stopping.join()


def test_steps_of_others_go_on_while_an_answer_waits_for_indexing(
    served: Served, engine: Engine, tmp_path: Path
) -> None:
    long_prompt = np.random.default_rng(1).integers(0, 1_000, 1_000_000).astype(np.int32)
    with (
        served(engine, tmp_path, max_frame_bytes=1 << 24) as endpoint,
        Client(endpoint, deadline=PATIENT) as waiting,
        Client(endpoint, deadline=PATIENT) as stepping,
    ):
        request = stepping.open("short", [1, 2, 3, 1, 2], wait=True)
        opening = threading.Thread(target=lambda: waiting.open("long", long_prompt, wait=True))
        opening.start()
        while engine.statistics().sessions < 2:
            assert request.draft(2).tokens.tolist()[0] == 3
        assert request.step([3], budget=2).tokens.tolist()[0] == 1
        opening.join()
        assert waiting.health().counters.steps == 1


def test_a_tcp_port_in_use_is_refused(engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"):
            ZmqServer(engine, f"tcp://127.0.0.1:{port}", max_frame_bytes=1 << 20).start()


async def test_a_tcp_port_in_use_is_refused_by_grpc_too(engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"):
            await GrpcServer(engine, f"127.0.0.1:{port}", max_frame_bytes=1 << 20).start()


async def test_an_address_of_another_machine_is_not_called_in_use(engine: Engine) -> None:
    with pytest.raises(OSError, match="Cannot assign requested address"):
        await GrpcServer(engine, "192.0.2.1:5555", max_frame_bytes=1 << 20).start()
    with pytest.raises(OSError, match=r"Cannot assign requested address|No such device"):
        ZmqServer(engine, "tcp://192.0.2.1:5555", max_frame_bytes=1 << 20).start()


def test_port_0_takes_a_free_port_and_says_which(engine: Engine) -> None:
    server = ZmqServer(engine, "tcp://127.0.0.1:0", max_frame_bytes=1 << 20)
    server.start()
    with Client(server.endpoint, deadline=PATIENT) as client:
        assert client.check(PATIENT).state == "serving"
    server.stop(0)


def test_grpc_says_by_its_health_service_whether_it_serves(engine: Engine, tmp_path: Path) -> None:
    with grpc_served(engine, tmp_path) as endpoint, grpc.insecure_channel(endpoint) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "draftd.v1.Drafter"):
            reply = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENT)
            assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_grpc_describes_its_service_by_reflection(engine: Engine, tmp_path: Path) -> None:
    with grpc_served(engine, tmp_path) as endpoint, grpc.insecure_channel(endpoint) as channel:
        question = reflection_pb2.ServerReflectionRequest(file_containing_symbol="draftd.v1.Drafter")
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        (answer,) = stub.ServerReflectionInfo(iter([question]), timeout=PATIENT)
        described = [
            FileDescriptorProto.FromString(file) for file in answer.file_descriptor_response.file_descriptor_proto
        ]
        (service,) = [service for file in described for service in file.service]
        assert [method.name for method in service.method] == ["Stream", "Step"]


def test_stopping_grpc_ends_streams_without_waiting_for_the_grace(engine: Engine, tmp_path: Path) -> None:
    with grpc_served(engine, tmp_path, drain=10 * PATIENT) as endpoint:
        client = Client(endpoint, deadline=PATIENT)
        assert client.check(PATIENT).state == "serving"
    # Leaving the context stopped the server within the 30 s that the helper waits, and not after the grace.
    with client:
        assert client.check(PATIENT).state == "failing"


async def test_a_path_that_grpc_cannot_bind_is_an_os_error(engine: Engine, tmp_path: Path) -> None:
    too_long = tmp_path / ("long" * 50)
    with pytest.raises(OSError, match="gRPC cannot bind this address"):
        await GrpcServer(engine, f"unix:{too_long}", max_frame_bytes=1 << 20).start()
