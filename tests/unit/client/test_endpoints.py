import pytest

from draftd.client import AsyncClient, Client
from draftd.client.channel import grpc_target


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("ipc:///run/draftd.sock", None),
        ("tcp://10.0.0.1:5555", None),
        ("grpc://10.0.0.1:5556", "10.0.0.1:5556"),
        ("grpc+unix:/run/draftd-grpc.sock", "unix:/run/draftd-grpc.sock"),
        ("unix:/run/draftd-grpc.sock", "unix:/run/draftd-grpc.sock"),
    ],
)
def test_an_endpoint_says_how_it_is_reached(endpoint: str, target: str | None) -> None:
    assert grpc_target(endpoint) == target


@pytest.mark.parametrize("endpoint", ["http://localhost:80", "localhost:5555", "grpc://", "", "tcp:/x"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_another_endpoint_is_an_error_that_lists_the_forms(
    kind: type[Client] | type[AsyncClient], endpoint: str
) -> None:
    with pytest.raises(ValueError, match="ipc://PATH, tcp://HOST:PORT, grpc://HOST:PORT"):
        kind(endpoint)


def test_an_address_that_zmq_cannot_use_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="endpoint 'tcp://nowhere' cannot be used"):
        Client("tcp://nowhere")


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("inf"), float("nan"), 1e10])
def test_a_deadline_is_a_time_that_can_be_waited(deadline: float) -> None:
    with pytest.raises(ValueError, match="deadline is"):
        Client("ipc:///tmp/draftd-test.sock", deadline=deadline)
