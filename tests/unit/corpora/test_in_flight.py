"""What running requests share leaves no trace: not on the disk, not behind a restart, not behind a deletion."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from draftd.client.local import LocalClient
from draftd.config import Settings
from draftd.corpora import CorpusLibrary
from draftd.engine import Engine
from draftd.ingest import Selection
from tests.unit.corpora.conftest import NAMESPACE
from tests.unit.corpora.loader_here import LoaderHere

FINISHED, RUNNING, SECRET = range(100, 120), range(200, 220), range(300, 320)


class Server:
    """A library over a real engine, and a verifier of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "incoming").mkdir()
        self.start()

    def start(self) -> None:
        settings = Settings.model_validate({"history": {"flush_seconds": 3600.0}})
        self.engine = Engine(settings.engine, in_flight=settings.history.in_flight)
        self.library = CorpusLibrary(self.engine, LoaderHere(), settings, self._folder, self._folder / "incoming")
        self.library.open()
        self.client = LocalClient(self.engine, NAMESPACE)

    def stop(self) -> None:
        self.library.close()
        self.engine.close()

    def follows(self, output: range) -> bool:
        """Whether it is drafted from."""
        request = self.client.open("reader", [1, *output[:4]], share="none", wait=True)
        return output[4] in request.draft(budget=8).tokens.tolist()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


def test_a_restart_forgets_the_flight_alone(server: Server) -> None:
    finished, running = server.client.open("finished", [1]), server.client.open("running", [1])
    server.client.commit({finished: FINISHED, running: RUNNING})
    finished.close()
    assert server.follows(FINISHED)
    assert server.follows(RUNNING)
    server.stop()
    server.start()
    assert server.follows(FINISHED)
    assert not server.follows(RUNNING)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("of_history", [{"request_ids": ["secret"]}, {}])
def test_what_is_deleted_is_not_in_flight_either(
    server: Server, closed: bool, of_history: dict[str, list[str]]
) -> None:
    """A running request is only deleted by its name."""
    running, secret = server.client.open("running", [1]), server.client.open("secret", [1])
    server.client.commit({running: range(1000, 1400), secret: SECRET})
    assert server.follows(SECRET)
    if closed:
        secret.close()
        assert server.follows(SECRET)
    server.library.delete(Selection.model_validate({"tenant": "acme", "model": "m", "history": True} | of_history))
    assert server.follows(SECRET) == (not closed and not of_history)
    assert server.follows(range(1000, 1005))
