"""SIGTERM: answers under way are given, then the drafter ends with status 0 and leaves no socket behind."""

from pathlib import Path

import pytest

from draftd.client import Client, Reason
from tests.faults.process import ServerProcess

GONE = {Reason.LATE, Reason.UNREACHABLE, Reason.OFF}
DEADLINE = 2.0  # seconds: a slow machine is not a late answer


def test_sigterm_ends_with_status_0_also_with_clients_connected(server: ServerProcess, tmp_path: Path) -> None:
    with Client(server.zmq, deadline=DEADLINE) as by_zmq, Client(server.grpc, deadline=DEADLINE) as by_grpc:
        requests = [client.open("r", [1, 2, 3, 1, 2], wait=True) for client in (by_zmq, by_grpc)]
        assert all(len(request.draft(2)) for request in requests)
        server.terminate()
        assert server.wait() == 0
        assert all(request.step([3]).reason in GONE for request in requests)
    assert not list(tmp_path.glob("*.sock"))


def test_a_second_drafter_at_the_same_address_is_refused_in_one_line(server: ServerProcess, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    second = ServerProcess(other)
    second.ring = server.ring
    with pytest.raises(AssertionError, match="the server did not start"):
        second.start()
    assert second.wait() != 0
    (line,) = [line for line in second.log().splitlines() if "zmq" in line]
    assert "address already in use" in line
    with Client(server.zmq, deadline=5) as client:
        assert client.check().state == "serving", "the first one still has its socket"


def test_a_socket_left_by_a_killed_drafter_is_taken_over(server: ServerProcess, tmp_path: Path) -> None:
    server.kill()
    assert (tmp_path / "zmq.sock").is_socket()
    assert (tmp_path / "grpc.sock").is_socket()
    server.start()
    for endpoint in (server.ring, server.zmq, server.grpc):
        with Client(endpoint, deadline=5) as client:
            assert client.check().state == "serving"
