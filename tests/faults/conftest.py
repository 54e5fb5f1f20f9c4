from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.process import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as process:
        yield process


@pytest.fixture(params=["ring", "zmq", "grpc"])
def endpoint(request: pytest.FixtureRequest, server: ServerProcess) -> str:
    """The server's endpoint of one transport; a test with it runs once for each."""
    found: str = getattr(server, request.param)
    return found
