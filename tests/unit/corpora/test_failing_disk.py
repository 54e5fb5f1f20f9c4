"""Whatever call of the disk fails in whatever change, once or from then on: it is made or not, and what is acknowledged
later is kept, for the process as it goes on and for a start."""

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from draftd.corpora.rebuilding import merge
from draftd.ingest import Selection
from tests.property.crashing_disk import CrashingDisk, Fault
from tests.unit.corpora.conftest import NAMESPACE, Shelf, key

State = dict[str, list[list[int]]]  # texts by the name of the corpus, of the history by ""


def base(shelf: Shelf) -> None:
    shelf.add({"gone-document": [1, 1], "b": [2]})
    shelf.add({"c": [3]})
    shelf.engine.finish(NAMESPACE, [4], "gone-request")
    shelf.engine.finish(NAMESPACE, [5], "kept")
    shelf.library._keeper.flush()


BEFORE: State = {"docs": [[1, 1], [2], [3]], "": [[4], [5]]}


def seal(shelf: Shelf) -> None:
    shelf.library._keeper.seal_all(NAMESPACE)


def merge_all(shelf: Shelf) -> None:
    merge(shelf.library._workshop, shelf.library._registry.get(key(), None))


def delete(shelf: Shelf, **what: object) -> None:
    shelf.library.delete(Selection.model_validate({"tenant": "acme", "model": "m", **what}))


def delete_documents(shelf: Shelf) -> None:
    delete(shelf, corpus_id="docs", document_ids=["gone-document"])


def delete_requests(shelf: Shelf) -> None:
    delete(shelf, history=True, request_ids=["gone-request"])


def bring_in(shelf: Shelf) -> None:
    shelf.library.import_(shelf.folder.parent / "archive")


CHANGES: dict[str, tuple[Callable[[Shelf], object], State]] = {
    "create": (lambda shelf: shelf.add({"x": [9]}, "new"), BEFORE | {"new": [[9]]}),
    "add": (lambda shelf: shelf.add({"x": [9]}), BEFORE | {"docs": [[1, 1], [2], [3], [9]]}),
    "merge": (merge_all, BEFORE),
    "delete": (delete_documents, BEFORE | {"docs": [[2], [3]]}),
    "remove": (lambda shelf: shelf.library.remove(key()), {"": BEFORE[""]}),
    "seal": (seal, BEFORE),
    "forget": (delete_requests, BEFORE | {"": [[5]]}),
    "import": (bring_in, {"docs": BEFORE["docs"], "one": [[7]], "two": [[8]], "": [[6], [4], [5]]}),
}
DELETIONS = {"delete": b"gone-document", "forget": b"gone-request"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the state before, and an archive beside it."""
    folder = tmp_path_factory.mktemp("template")
    for name, fill in (("elsewhere", elsewhere), ("data", base)):
        (folder / name).mkdir()
        shelf = Shelf(folder / name, {"history": {"flush_seconds": 3600.0}})
        fill(shelf)
        shelf.stop()
    return folder


def elsewhere(shelf: Shelf) -> None:
    shelf.add({"x": [7]}, "one")
    shelf.add({"y": [8]}, "two")
    shelf.engine.finish(NAMESPACE, [6], "older")
    into = io.BytesIO()
    shelf.library.export(NAMESPACE, into)
    (shelf.folder.parent / "archive").write_bytes(into.getvalue())


@contextmanager
def started(template: Path, folder: Path) -> Iterator[Shelf]:
    shutil.copytree(template, folder)
    shelf = Shelf(folder / "data", {"history": {"flush_seconds": 3600.0}})
    shelf.library._upkeep.stop()  # the test says when
    yield shelf
    shelf.stop()


@pytest.mark.parametrize("fault", [Fault.ONE, Fault.LASTING])
@pytest.mark.parametrize("name", CHANGES)
def test_whichever_call_fails(
    name: str, fault: Fault, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftd.corpora.merging.MOST_SEGMENTS", 1)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # nothing here loses power
    change, after = CHANGES[name]
    for operations in count():
        with started(template, tmp_path / str(operations)) as shelf:
            disk = CrashingDisk(shelf.folder)
            possible = [after]
            try:
                with disk.failing_after(operations, fault):
                    change(shelf)
            except OSError:
                possible.append(BEFORE)
            disk.forget()
            if fault is Fault.LASTING:
                shelf.library._look_after()
            goes_on(shelf, possible)
            if name in DELETIONS:
                change(shelf)
                assert DELETIONS[name] not in shelf.bytes_on_disk()
            with started(shelf.folder.parent, tmp_path / f"{operations} after a kill") as restarted:
                assert read(restarted) == read(shelf)
                assert not (restarted.folder / "quarantine").exists()
            shelf.library._look_after()
            nothing_is_left_over(shelf)
        if not disk.failed:
            return


def goes_on(shelf: Shelf, possible: list[State]) -> None:
    """Other changes are made as if nothing had been."""
    shelf.add({"later": [100]})
    shelf.engine.finish(NAMESPACE, [200], "later")
    shelf.library._keeper.flush()
    assert read(shelf) in [
        {**state, "docs": [*state.get("docs", []), [100]], "": [*state[""], [200]]} for state in possible
    ]


def read(shelf: Shelf) -> State:
    corpora = {name: shelf.engine.corpus(NAMESPACE, name) for name in shelf.engine.corpora.get(NAMESPACE, {})}
    counts = {name: sum(map(len, texts)) for name, texts in corpora.items()}
    assert shelf.library.token_counts(NAMESPACE) == counts
    return {**corpora, "": shelf.engine.history(NAMESPACE)}


def nothing_is_left_over(shelf: Shelf) -> None:
    segments = [segment for each in shelf.engine.corpora[NAMESPACE].values() for segment in each]
    segments += shelf.engine.shared[NAMESPACE, ""].segments
    assert len(shelf.files(".segment")) == len(segments)
    assert shelf.library._workshop.ledger.used() == sum(segment.memory_size for segment in segments)
    assert list((shelf.folder / "incoming").iterdir()) == []
    assert not (shelf.folder / "pending-import.json").exists()
