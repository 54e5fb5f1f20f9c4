"""What the engine drops to keep a history's own limit leaves the disk and the figures too; nothing else does."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from draftd.client.local import LocalClient
from draftd.config import Settings
from draftd.corpora import CorpusLibrary, Deleted
from draftd.engine import Engine
from draftd.ingest import Selection
from draftd.native import Segment
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE
from tests.unit.corpora.loader_here import LoaderHere

RIVAL = Namespace("rival", "m")
OUTPUT = [token * 7919 % 500 for token in range(8_000)]  # some 370 KB in a head, 40 KB in a segment
SETTINGS = {
    "engine": {"memory_limit": 2 << 20, "history_limit": 1 << 20},
    "history": {"flush_seconds": 3600.0, "seal_tokens": 6_000},
}


class Shelf:
    """A library over a real engine. Tests call the upkeep that they want done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "incoming").mkdir()
        self.start()

    def start(self, max_age: float = 0.0) -> None:
        settings = Settings.model_validate(SETTINGS | {"history": SETTINGS["history"] | {"max_age": max_age}})
        self.engine = Engine(settings.engine)
        self.library = CorpusLibrary(self.engine, LoaderHere(), settings, self.folder, self.folder / "incoming")
        self.library.open()

    def stop(self) -> None:
        self.library.close()
        self.engine.close()

    def finish(self, tokens: Sequence[int], group: str = "") -> None:
        with LocalClient(self.engine, NAMESPACE) as client:
            request = client.open("secret", [], **({"share": "group", "group": group} if group else {}))
            request.commit(tokens)
            request.close()
            client.open("behind it", [], share="none", wait=True).close()

    def rival(self) -> None:
        """Another tenant's requests take all the memory there is."""
        with LocalClient(self.engine, RIVAL) as client:
            for number in range(6):
                client.open(str(number), OUTPUT, share="none", wait=True)

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

    def head_tokens(self, group: str) -> int:
        return sum(state.head_tokens for state in self.engine.histories() if state.group == group)

    def journals(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.files("*/journal-*"))

    @property
    def charged(self) -> int:
        return self.library._workshop.ledger.used()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.stop()


def test_a_history_that_reached_its_limit_is_as_large_on_the_disk(shelf: Shelf) -> None:
    for number in range(36):
        shelf.finish([number, *OUTPUT])
        shelf.look_after()
    shelf.look_after()
    read, on_disk = shelf.segments()
    assert 0 < read == on_disk
    assert 0 < shelf.charged <= 1 << 20
    assert sum(Segment.open(path).documents for path in shelf.files("*/*.segment")) < 36
    shelf.stop()
    shelf.start()
    assert shelf.segments() == (read, on_disk)


@pytest.mark.parametrize("group", ["", "g"])
def test_memory_that_another_tenant_needs_costs_nothing_on_the_disk(group: str, shelf: Shelf) -> None:
    shelf.finish(OUTPUT, group)
    shelf.look_after()
    shelf.finish(OUTPUT[:10], group)
    shelf.look_after()
    shelf.rival()
    assert shelf.head_tokens(group) == 0
    shelf.look_after()
    assert shelf.segments(group) == (1, 1)
    shelf.stop()
    shelf.start()
    assert shelf.segments(group) == (1, 1)
    assert shelf.head_tokens(group) == 10, "from the journal"


@pytest.mark.parametrize("group", ["", "g"])
@pytest.mark.parametrize("restart", [False, True])
def test_what_is_in_journals_alone_is_sealed_with_what_comes_next(group: str, restart: bool, shelf: Shelf) -> None:
    shelf.finish(OUTPUT[:10], group)
    shelf.look_after()
    if restart:
        shelf.stop()
        shelf.start()
    shelf.rival()
    assert shelf.head_tokens(group) == 0
    shelf.finish(OUTPUT, group)
    shelf.look_after()
    (path,) = shelf.files("*/*.segment")
    ends = Segment.open(path).document_ends().tolist()
    assert ends == [10, 10 + len(OUTPUT)]
    assert shelf.files("*/journal-*") == []


@pytest.mark.parametrize("group", ["", "g"])
def test_what_is_in_journals_alone_expires(group: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.stop()
    shelf.start(max_age=1000.0)
    shelf.finish(OUTPUT[:10], group)
    shelf.look_after()
    shelf.rival()
    shelf.look_after()
    assert b"secret" in shelf.journals()
    now = time.time()
    monkeypatch.setattr("draftd.corpora.histories.time", SimpleNamespace(time=lambda: now + 1300.0))
    shelf.look_after()
    assert b"secret" not in shelf.journals()
    shelf.stop()
    shelf.start()
    assert shelf.head_tokens(group) == 0


@pytest.mark.parametrize("group", ["", "g"])
def test_what_is_in_journals_alone_can_be_deleted(group: str, shelf: Shelf) -> None:
    shelf.finish(OUTPUT[:10], group)
    shelf.look_after()
    shelf.rival()
    selection = Selection(tenant="acme", model="m", history=True, request_ids=("secret",))
    assert shelf.library.delete(selection) == Deleted(1, 10)
    assert b"secret" not in shelf.journals()
