"""A server that is told to stop has everything on its disk that finished before."""

from pathlib import Path

from bench.kill_points import tokens_of
from bench.killable import KillableServer
from draftd.client import Client, Namespace


def test_what_finished_before_a_stop_is_there_after_it(tmp_path: Path) -> None:
    server = KillableServer(tmp_path / "data", HISTORY__FLUSH_SECONDS="3600")
    labels = [f"request-{number}" for number in range(20)]
    try:
        server.start()
        with Client(server.endpoint, Namespace("acme"), verifier="test", deadline=30) as client:
            requests = {client.open(label, [1]): tokens_of(label) for label in labels}
            client.step(requests)
            for request in requests:
                request.close()
            client.open("last", [1], wait=True)  # the closes have arrived
        server.stop()
        server.start()
        found = server.contents("acme").history
        assert sorted(label for label, _ in found) == sorted(labels)
        assert all(tokens == tokens_of(label) for label, tokens in found)
    finally:
        server.kill()
