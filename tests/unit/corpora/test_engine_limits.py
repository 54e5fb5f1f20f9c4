"""What the engine drops to keep its limits leaves the disk and the figures too, and nothing else does."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from draftd.client.local import LocalClient
from draftd.config import Settings
from draftd.corpora import CorpusLibrary
from draftd.engine import Engine
from draftd.native import Segment
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE
from tests.unit.corpora.loader_here import LoaderHere

RIVAL = Namespace("rival", "m")
OUTPUT = [token * 7919 % 100_000 for token in range(12_000)]  # some 400 KB in a head, 60 KB in a segment
SETTINGS = {
    "engine": {"memory_limit": 1 << 20, "history_limit": 1 << 20},
    "history": {"flush_seconds": 3600.0, "seal_tokens": 10_000},
}


class Shelf:
    """A library over a real engine. Tests call the upkeep that they want done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "incoming").mkdir()
        self.start()

    def start(self) -> None:
        settings = Settings.model_validate(SETTINGS)
        self.engine = Engine(settings.engine)
        self.library = CorpusLibrary(self.engine, LoaderHere(), settings, self.folder, self.folder / "incoming")
        self.library.open()

    def stop(self) -> None:
        self.library.close()
        self.engine.close()

    def finish(self, tokens: Sequence[int], group: str = "") -> None:
        with LocalClient(self.engine, NAMESPACE) as client:
            request = client.open("r", [], **({"share": "group", "group": group} if group else {}))
            request.commit(tokens)
            request.close()
            client.open("behind it", [], share="none", wait=True).close()

    def rival(self) -> None:
        """Another tenant's requests take all the memory there is."""
        with LocalClient(self.engine, RIVAL) as client:
            for name in ("one", "two", "three"):
                client.open(name, OUTPUT, share="none", wait=True)

    def look_after(self) -> None:
        self.library._keeper.flush()
        self.library._keeper.look_after()

    def segments(self, group: str = "") -> tuple[int, int]:
        """How many the engine reads of a history, and how many are on the disk for it."""
        (state,) = [each for each in self.engine.histories() if (each.namespace, each.group) == (NAMESPACE, group)]
        collection = self.library._keeper.of(NAMESPACE).get((NAMESPACE, group))
        on_disk = len(list(collection.folder.path.glob("*.segment"))) if collection is not None else 0
        return state.segments, on_disk

    def files(self, pattern: str) -> list[Path]:
        return sorted((self.folder / "collections").glob(pattern))

    @property
    def charged(self) -> int:
        return self.library._workshop.ledger.used()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.stop()


def test_a_history_that_reached_its_limit_is_as_large_on_the_disk(shelf: Shelf) -> None:
    for number in range(24):
        shelf.finish([number, *OUTPUT])
        shelf.look_after()
    shelf.look_after()
    read, on_disk = shelf.segments()
    assert 0 < read == on_disk
    assert 0 < shelf.charged <= 1 << 20
    assert sum(Segment.open(path).documents for path in shelf.files("*/*.segment")) < 24
    shelf.stop()
    shelf.start()
    assert shelf.segments() == (read, on_disk)


def test_segments_that_made_room_for_another_tenant_do_not_come_back(shelf: Shelf) -> None:
    shelf.finish(OUTPUT)
    shelf.look_after()
    assert shelf.segments() == (1, 1)
    shelf.rival()
    assert shelf.segments() == (0, 1)
    shelf.finish(OUTPUT[:100])
    shelf.look_after()
    assert shelf.segments() == (0, 0)
    assert shelf.charged == 0
    shelf.stop()
    shelf.start()
    assert shelf.segments() == (0, 0)
    assert sum(state.head_tokens for state in shelf.engine.histories()) == 100, "what came later is there"


def test_a_group_that_made_room_leaves_nothing_and_begins_anew(shelf: Shelf) -> None:
    shelf.finish(OUTPUT, "g")
    shelf.look_after()
    shelf.finish(OUTPUT[:10], "g")
    shelf.look_after()
    assert len(shelf.files("*/*.segment")) == len(shelf.files("*/journal-*")) == 1
    shelf.rival()
    assert "g" not in {state.group for state in shelf.engine.histories()}
    shelf.look_after()
    assert shelf.files("*") == []
    assert shelf.charged == 0
    shelf.finish(OUTPUT[:10], "g")
    shelf.library._keeper.flush()
    shelf.stop()
    shelf.start()
    assert sum(state.head_tokens for state in shelf.engine.histories() if state.group == "g") == 10


def test_heads_that_made_room_leave_no_journal(shelf: Shelf) -> None:
    shelf.finish(OUTPUT[:10])
    shelf.look_after()
    assert len(shelf.files("*/journal-*")) == 1
    shelf.rival()
    shelf.look_after()
    assert shelf.files("*/journal-*") == []


def test_a_frozen_head_that_made_room_is_not_sealed_any_more(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("draftd.corpora.upkeep.REST_SECONDS", 0.0)

    def fail(*_args: object, **_kwargs: object) -> object:
        raise OSError("no")

    shelf.finish(OUTPUT)
    with monkeypatch.context() as failing:
        failing.setattr(shelf.library._loader, "seal", fail)
        shelf.look_after()
    assert "maintenance failed" in caplog.text
    shelf.rival()
    shelf.look_after()
    assert shelf.segments() == (0, 0)
    assert shelf.files("*/journal-*") == []
    shelf.finish(OUTPUT)
    shelf.look_after()
    assert shelf.segments() == (1, 1), "the next one is"
