"""Peers that send without pause: everything else that a drafter has to do still gets its turn."""

import re
import threading
import urllib.request
from collections.abc import Iterator

import pytest
import zmq

from draftd.client import Client
from tests.contract.frames import commit_frame, hello_frame, sync_frame
from tests.faults.process import ServerProcess

PATIENT = 30.0  # seconds; only a test that fails waits that long
TEXT = list(range(200)) * 3


class Flood(threading.Thread):
    """Sends steps as fast as they go and reads no answer."""

    def __init__(self, endpoint: str, verifier: int) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._verifier = verifier
        self._enough = threading.Event()
        self.under_way = threading.Event()

    def run(self) -> None:
        frame = commit_frame(self._verifier, step=2, start=len(TEXT), tokens=[], max_nodes=16)
        with zmq.Context.instance().socket(zmq.DEALER) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.SNDTIMEO, 10)  # milliseconds: looks for the end now and then
            socket.connect(self._endpoint)
            socket.send(hello_frame(self._verifier))
            socket.send(sync_frame(self._verifier, step=1, prompt=TEXT))
            while not self._enough.is_set():
                try:
                    socket.send(frame)
                except zmq.Again:
                    self.under_way.set()  # more than the drafter can take

    def end(self) -> None:
        self._enough.set()
        self.join()


@pytest.fixture
def flooded(server: ServerProcess) -> Iterator[ServerProcess]:
    floods = [Flood(server.zmq, verifier) for verifier in (101, 102)]
    for flood in floods:
        flood.start()
    try:
        for flood in floods:
            assert flood.under_way.wait(PATIENT), "the drafter was never behind"
        yield server
    finally:
        for flood in floods:
            flood.end()


def test_an_opening_that_waits_for_indexing_is_answered_under_flood(flooded: ServerProcess) -> None:
    with Client(flooded.zmq, deadline=PATIENT) as client:
        for number in range(3):
            client.open(f"r{number}", TEXT, wait=True)
        assert (client.health().counters.steps, client.health().counters.late) == (3, 0)


def test_the_drafts_of_those_who_flood_are_shed_and_nobody_elses(flooded: ServerProcess) -> None:
    with Client(flooded.zmq, deadline=PATIENT) as client:
        request = client.open("quiet", TEXT, wait=True)
        for _ in range(20):
            assert len(request.draft(budget=4)) == 4
    shed = re.search(
        r'draftd_empty_tails_total{reason="SHED"} ([0-9.]+)',
        urllib.request.urlopen(f"{flooded.http}/metrics").read().decode(),
    )
    assert shed is not None
    assert float(shed[1]) > 0


def test_sigterm_ends_a_flooded_drafter_with_status_0(flooded: ServerProcess) -> None:
    flooded.terminate()
    assert flooded.wait() == 0
