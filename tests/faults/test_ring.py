"""Shared memory when a peer dies, hangs, or writes what it likes into it."""

import contextlib
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings

from draftd import native
from draftd.client import Client, Reason
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.transport import ring_server
from draftd.transport.ring_server import RingServer
from draftd.wire.ring import GREETING, ring_path
from tests.contract.serving import ring_served, zmq_served
from tests.faults.process import ServerProcess, until

PATIENT = 30.0
TEXT = [1, 2, 3, 4, 1, 2]
LANE = 1 << 20
STATES = 4096  # bytes before the lanes


def rings_of(pid: int) -> int:
    """Mappings of shared memory in that process."""
    return Path(f"/proc/{pid}/maps").read_text().count("memfd:draftd-ring")


@contextmanager
def raw_connection(endpoint: str) -> Iterator[tuple[socket.socket, int]]:
    """A client's socket, greeted, and the file of its memory; at the end this process has let go of both ends."""
    before = rings_of(os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENT)
        connection.connect(str(ring_path(endpoint)))
        greeting, files, _, _ = socket.recv_fds(connection, 100, 1)
        assert greeting == GREETING
        try:
            yield connection, files[0]
        finally:
            os.close(files[0])
    until(lambda: rings_of(os.getpid()) <= before)


def test_a_client_of_this_host_shares_memory_by_itself_and_gives_it_back(server: ServerProcess) -> None:
    pid = server.pid
    for _ in range(3):
        with Client(server.ring, deadline=PATIENT) as client:
            assert client.open("r", TEXT, wait=True).draft(1).tokens.tolist() == [3]
            assert rings_of(pid) == rings_of(os.getpid()) == 1
        until(lambda: rings_of(pid) == 0)
        assert rings_of(os.getpid()) == 0


def test_a_drafter_that_is_told_not_to_share_memory_is_spoken_to_over_zmq(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, DRAFTD_LISTEN__SHARED_MEMORY="false") as server,
        Client(server.ring, deadline=PATIENT) as client,
    ):
        assert client.check(PATIENT).state == "serving"
        assert rings_of(server.pid) == 0


def test_a_killed_drafter_leaves_empty_drafts_and_its_successor_is_found(server: ServerProcess) -> None:
    with Client(server.ring, deadline=0.2) as client:
        request = client.open("r", TEXT, wait=True, deadline=PATIENT)
        server.kill()
        assert request.draft(1).reason == Reason.UNREACHABLE
        assert rings_of(os.getpid()) == 0
        server.start()
        until(lambda: request.draft(1).tokens.tolist() == [3])
        assert rings_of(os.getpid()) == rings_of(server.pid) == 1


def test_a_drafter_that_hangs_costs_the_deadline_and_nothing_after(server: ServerProcess) -> None:
    with Client(server.ring, deadline=0.2) as client:
        request = client.open("r", TEXT, wait=True, deadline=PATIENT)
        server.freeze()
        long_prompt = np.zeros(2 * LANE, np.int32)  # the lane is full, and more is kept
        client.open("long", long_prompt)
        assert request.step([3], budget=1).reason == Reason.UNREACHABLE, "there was no room for it in time"
        server.thaw()
        until(lambda: request.draft(1).tokens.tolist() == [4])
        assert client.health().counters.row_errors == 0


DYING_CLIENT = """
import sys
from draftd.client.ring_channel import RingChannel
channel = RingChannel(sys.argv[1])
assert channel.send([bytes(8 << 20)], 30.0)  # more than the lane takes: it is half way
print("sent", flush=True)
sys.stdin.read()
"""


def test_a_client_killed_in_the_middle_of_a_frame_leaves_nothing_behind(server: ServerProcess) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DYING_CLIENT, server.ring], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"sent\n"
        assert rings_of(server.pid) == 1
        dying.kill()
    until(lambda: rings_of(server.pid) == 0)
    threads = psutil.Process(server.pid).num_threads()
    with Client(server.ring, deadline=PATIENT) as client:
        assert client.open("r", TEXT, wait=True).draft(1).tokens.tolist() == [3]
    until(lambda: psutil.Process(server.pid).num_threads() <= threads)


@pytest.fixture(scope="module")
def scribbled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Client]]:
    """A server, and a client of it that must not notice what others do."""
    with (
        ring_served(Engine(EngineSettings()), tmp_path_factory.mktemp("ring")) as endpoint,
        Client(endpoint, deadline=PATIENT) as bystander,
    ):
        yield endpoint, bystander


words = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 2 * LANE), st.just(0))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    states=st.lists(words, min_size=16, max_size=16),
    lane=st.binary(min_size=1, max_size=64),
    bells=st.integers(0, 3),
)
def test_who_scribbles_over_a_ring_breaks_that_one_alone(
    scribbled: tuple[str, Client], states: list[int], lane: bytes, bells: int
) -> None:
    endpoint, bystander = scribbled
    request = bystander.open("r", TEXT, wait=True)
    with raw_connection(endpoint) as (connection, file), mmap.mmap(file, 0) as memory:
        for _ in range(2):  # the other end's words too, and again after it looked
            memory[STATES : STATES + len(lane)] = lane
            memory[:128] = np.array(states, np.uint64).tobytes()
            with contextlib.suppress(ConnectionError):  # it has had enough
                for _ in range(bells):
                    connection.send(b"!")
            assert request.draft(1).tokens.tolist() == [3]
    request.close()


def test_the_memory_can_not_be_cut_below_the_other_end(scribbled: tuple[str, Client]) -> None:
    endpoint, bystander = scribbled
    with raw_connection(endpoint) as (_, file):
        for size in (0, 1 << 30):
            with pytest.raises(PermissionError):
                os.ftruncate(file, size)
    assert bystander.check(PATIENT).state == "serving"


def test_memory_of_any_other_kind_is_not_taken_from_a_drafter(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/zmq.sock"
    before = rings_of(os.getpid())
    with (
        zmq_served(Engine(EngineSettings()), tmp_path),
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as impostor,
        (tmp_path / "file").open("w+b") as file,
    ):
        file.truncate(STATES + 2 * LANE)
        impostor.bind(str(ring_path(endpoint)))
        impostor.listen()
        with Client(endpoint, deadline=PATIENT) as client:
            connection, _ = impostor.accept()
            with connection:
                socket.send_fds(connection, [GREETING], [file.fileno()])
                assert client.check(PATIENT).state == "serving"  # over ZMQ
            assert rings_of(os.getpid()) == before


@pytest.mark.parametrize("greeting", [b"", b"draftd ring 2\n"])
def test_a_drafter_that_offers_none_or_another_is_spoken_to_over_zmq(tmp_path: Path, greeting: bytes) -> None:
    endpoint = f"ipc://{tmp_path}/zmq.sock"
    with (
        zmq_served(Engine(EngineSettings()), tmp_path),
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other,
    ):
        other.bind(str(ring_path(endpoint)))
        other.listen()
        with Client(endpoint, deadline=PATIENT) as client:
            connection, _ = other.accept()
            connection.sendall(greeting)
            connection.close()
            assert client.check(PATIENT).state == "serving"


def test_more_clients_than_there_are_rings_for_use_zmq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_server, "MOST_CONNECTIONS", 2)
    engine = Engine(EngineSettings())
    before = rings_of(os.getpid())
    with zmq_served(engine, tmp_path) as endpoint:
        rings = RingServer(engine, ring_path(endpoint), max_frame_bytes=1 << 20)
        rings.start()
        clients = [Client(endpoint, deadline=PATIENT) for _ in range(4)]
        for client in clients:
            assert client.check(PATIENT).state == "serving"
        assert rings_of(os.getpid()) == before + 4  # both ends of two
        for client in clients:
            client.close()
        rings.stop(0)


@pytest.mark.parametrize(("owner", "call"), [(native, "create_ring_memory"), (Engine, "indexed_fileno")])
def test_without_what_a_ring_needs_clients_use_zmq_and_the_log_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: object, call: str
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    engine = Engine(EngineSettings())
    with zmq_served(engine, tmp_path) as endpoint:
        monkeypatch.setattr(owner, call, refused)
        rings = RingServer(engine, ring_path(endpoint), max_frame_bytes=1 << 20)
        rings.start()
        for _ in range(2):
            with Client(endpoint, deadline=PATIENT) as client:
                assert client.check(PATIENT).state == "serving"
        rings.stop(0)
    told = [record.getMessage() for record in caplog.records if "without shared memory" in record.getMessage()]
    assert told == ["clients of this host go without shared memory, over ZMQ: operation not permitted"]


def test_a_client_that_does_not_read_is_not_read_either(scribbled: tuple[str, Client]) -> None:
    """Its answers wait in its own lane; others are served, and so is it when it reads again."""
    endpoint, bystander = scribbled
    with raw_connection(endpoint) as (connection, file):
        ring = native.Ring(file, connection.detach(), server=False, longest_frame=1 << 20, spins=False)
        frame = bytes(1000)  # is answered with an error
        sent = 0
        while ring.unsent == 0:
            assert ring.send(frame)
            sent += 1
        assert bystander.check(PATIENT).state == "serving"
        for _ in range(sent):
            assert ring.receive(PATIENT) is not None
        ring.close()
