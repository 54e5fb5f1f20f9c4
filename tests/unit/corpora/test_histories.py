"""Histories on the disk: journalled, sealed, merged, expired, deleted from, restored."""

import errno
import os
import threading
import time

import pytest

from draftd.corpora import Deleted
from draftd.corpora.merging import MOST_SEGMENTS
from draftd.ingest import Selection
from draftd.storage import journal
from draftd.wire import HistoryDocuments, Namespace
from tests.unit.corpora.conftest import NAMESPACE, Shelf

SEALING = {"history": {"flush_seconds": 3600.0, "seal_tokens": 3}}


def requests(*names: str, **fields: object) -> Selection:
    return Selection.model_validate(
        {"tenant": "acme", "model": "m", "history": True, "request_ids": names or None} | fields
    )


def flush(shelf: Shelf) -> None:
    shelf.library._keeper.flush()


def look_after(shelf: Shelf) -> None:
    flush(shelf)
    shelf.library._keeper.look_after()


def test_what_was_flushed_comes_back_after_a_kill(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    shelf.engine.finish(NAMESPACE, [1, 2], "r1", 5)
    flush(shelf)
    shelf.engine.finish(NAMESPACE, [3], "r2", 6)
    shelf.engine.finish(NAMESPACE, [4], "r3", 7, group="g")
    flush(shelf)
    shelf.engine.finish(NAMESPACE, [9], "late", 8)
    with caplog.at_level("INFO"):
        shelf.restart()
    assert "2 collections restored: 4 tokens" in caplog.text, "those in journals are some too"
    assert shelf.engine.history(NAMESPACE) == [[1, 2], [3]]
    assert shelf.engine.history(NAMESPACE, "g") == [[4]]
    document = shelf.engine.shared[NAMESPACE, ""].head[1]
    assert (document.label, document.time) == ("r2", 6)


@pytest.mark.parametrize("shelf", [{"history": {"flush_seconds": 0.01}}], indirect=True)
def test_it_is_flushed_again_and_again(shelf: Shelf) -> None:
    flushed = threading.Event()
    drain = shelf.engine.drain_history

    def drained() -> list[HistoryDocuments]:
        documents = drain()
        if not documents and shelf.files("journal-1"):
            flushed.set()  # a flush after the one that wrote it
        return documents

    shelf.engine.drain_history = drained  # type: ignore[method-assign]
    shelf.engine.finish(NAMESPACE, [1], "r1")
    assert flushed.wait(60)
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1]]


def test_a_stop_loses_nothing(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1], "r1")
    shelf.stop()
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1]]


@pytest.mark.parametrize("shelf", [SEALING], indirect=True)
def test_a_full_head_becomes_a_segment_and_its_journal_goes(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1, 2], "r1", 5)
    look_after(shelf)
    assert len(shelf.files("journal-1")) == 1
    shelf.engine.finish(NAMESPACE, [3], "r2", 6)
    look_after(shelf)
    history = shelf.engine.shared[NAMESPACE, ""]
    assert (len(history.segments), history.head, history.frozen) == (1, [], None)
    assert shelf.engine.history(NAMESPACE) == [[1, 2], [3]]
    assert (history.segments[0].labels(), history.segments[0].times().tolist()) == (["r1", "r2"], [5, 6])
    assert [path.name.partition("-")[0] for path in shelf.files("journal*")] == []
    shelf.engine.finish(NAMESPACE, [4], "r3", 7)
    flush(shelf)
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1, 2], [3], [4]]
    assert shelf.engine.shared[NAMESPACE, ""].generation == 2


@pytest.mark.parametrize("shelf", [SEALING], indirect=True)
def test_what_finishes_while_a_head_is_sealed_goes_to_the_next_journal(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1, 2, 3], "r1")
    flush(shelf)
    sealed = shelf.library._loader.seal

    def seal(*args: object, **kwargs: object) -> object:
        shelf.engine.finish(NAMESPACE, [4], "r2")
        flush(shelf)
        return sealed(*args, **kwargs)  # type: ignore[arg-type]

    shelf.library._loader.seal = seal  # type: ignore[assignment, method-assign]
    look_after(shelf)
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1, 2, 3], [4]]


@pytest.mark.parametrize("shelf", [SEALING], indirect=True)
def test_a_seal_that_fails_is_done_later_with_all_there_was(
    shelf: Shelf, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftd.corpora.upkeep.REST_SECONDS", 0.0)
    sealed = shelf.library._loader.seal

    def fail(*_args: object, **_kwargs: object) -> object:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    shelf.library._loader.seal = fail  # type: ignore[assignment, method-assign]
    shelf.engine.finish(NAMESPACE, [1, 2, 3], "r1")
    look_after(shelf)
    assert "history of acme/m: maintenance failed and is tried again" in caplog.text
    shelf.library._loader.seal = sealed  # type: ignore[method-assign]
    shelf.engine.finish(NAMESPACE, [4], "r2")
    look_after(shelf)
    assert shelf.engine.history(NAMESPACE) == [[1, 2, 3], [4]]
    assert len(shelf.engine.shared[NAMESPACE, ""].segments) == 1
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1, 2, 3], [4]]


@pytest.mark.parametrize("shelf", [SEALING], indirect=True)
def test_segments_of_a_history_merge_in_order(shelf: Shelf) -> None:
    expected = []
    for number in range(MOST_SEGMENTS + 1):
        shelf.engine.finish(NAMESPACE, [number, 7, 7], f"r{number}", number)
        expected.append([number, 7, 7])
        look_after(shelf)
    assert shelf.engine.history(NAMESPACE) == expected
    assert len(shelf.engine.shared[NAMESPACE, ""].segments) <= MOST_SEGMENTS


TIGHT = SEALING | {"limits": {"namespace_bytes": 1 << 20, "tenant_bytes": 2 << 20, "process_bytes": 4 << 20}}


def finish_and_seal(shelf: Shelf, number: int) -> None:
    shelf.engine.finish(NAMESPACE, [number] * 30_000, f"r{number}", number)
    look_after(shelf)


@pytest.mark.parametrize("shelf", [TIGHT], indirect=True)
@pytest.mark.parametrize(
    ("owner", "kept", "building"),
    [
        (Namespace("rival", "m"), 0, 4 << 20),  # a load of another tenant
        (Namespace("rival", "m"), 1 << 20, 3 << 20),
        (Namespace("acme", "other"), 1 << 20, 3 << 20),
        (NAMESPACE, 1 << 20, 0),  # corpora of its own namespace: all that the history has would not make room
    ],
)
def test_a_history_forgets_nothing_for_what_others_hold(
    owner: Namespace, kept: int, building: int, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftd.corpora.upkeep.REST_SECONDS", 0.0)
    for number in range(3):
        finish_and_seal(shelf, number)
    files = shelf.files(".segment")
    ledger = shelf.library._workshop.ledger
    other = ledger.charge(owner)
    room = ledger.used()
    other.hold(max(kept - room, 0), building=max(building - room, 0))
    finish_and_seal(shelf, 3)
    assert shelf.files(".segment") == files
    everything = [[number] * 30_000 for number in range(4)]
    assert shelf.engine.history(NAMESPACE) == everything, "its head is drafted from until there is room"
    other.release()
    look_after(shelf)
    assert shelf.engine.shared[NAMESPACE, ""].frozen is None
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == everything


@pytest.mark.parametrize("shelf", [TIGHT], indirect=True)
def test_the_oldest_go_when_a_history_fills_its_namespace(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("draftd.corpora.upkeep.REST_SECONDS", 0.0)
    for number in range(14):
        finish_and_seal(shelf, number)
    firsts = [text[0] for text in shelf.engine.history(NAMESPACE)]
    assert firsts[0] > 0
    assert firsts == list(range(firsts[0], 14))
    assert shelf.engine.shared[NAMESPACE, ""].frozen is None
    shelf.restart()
    assert [text[0] for text in shelf.engine.history(NAMESPACE)] == firsts


@pytest.mark.parametrize(
    "shelf", [{"history": {"flush_seconds": 3600.0, "seal_tokens": 3, "max_age": 1000.0}}], indirect=True
)
def test_what_is_too_old_leaves_heads_and_segments(shelf: Shelf) -> None:
    now = int(time.time())
    shelf.engine.finish(NAMESPACE, [1, 2, 3], "sealed, too old", now - 2000)
    look_after(shelf)
    shelf.engine.finish(NAMESPACE, [4, 4], "sealed, too old, with a younger one", now - 1100)
    shelf.engine.finish(NAMESPACE, [5, 5], "young", now)
    look_after(shelf)
    assert shelf.engine.history(NAMESPACE) == [[5, 5]]
    shelf.engine.finish(NAMESPACE, [6], "not sealed for its number of tokens", now - 2000)
    look_after(shelf)
    assert shelf.engine.history(NAMESPACE) == [[5, 5]]
    assert b"too old" not in shelf.bytes_on_disk()


def test_deleted_requests_are_gone_from_heads_segments_and_journals(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1], "secret", 5)
    shelf.engine.finish(NAMESPACE, [2], "kept", 6)
    flush(shelf)
    shelf.library._keeper.seal_all(NAMESPACE)
    shelf.engine.finish(NAMESPACE, [3, 3], "secret", 7)
    shelf.engine.finish(NAMESPACE, [4], "kept", 8)
    shelf.engine.finish(NAMESPACE, [5], "secret", 9, group="g")
    shelf.engine.finish(Namespace("other", "m"), [6], "secret", 9)
    flush(shelf)
    assert shelf.library.delete(requests("secret")) == Deleted(documents=3, tokens=4)
    for _ in range(2):
        assert shelf.engine.history(NAMESPACE) == [[2], [4]]
        assert shelf.engine.history(NAMESPACE, "g") == []
        assert shelf.engine.history(Namespace("other", "m")) == [[6]]
        shelf.restart()
    shelf.library.delete(requests("secret", tenant="other"))
    assert b"secret" not in shelf.bytes_on_disk()


def test_deletion_reaches_what_was_not_flushed_yet(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1], "secret")
    shelf.engine.finish(NAMESPACE, [2], "kept")
    assert shelf.library.delete(requests("secret")) == Deleted(1, 1)
    assert shelf.engine.history(NAMESPACE) == [[2]]


def test_deletion_of_a_group_leaves_the_others(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1], "r1", group="g")
    shelf.engine.finish(NAMESPACE, [2], "r2", group="h")
    shelf.engine.finish(NAMESPACE, [3], "r3")
    assert shelf.library.delete(requests(group="g")) == Deleted(1, 1)
    shelf.restart()
    assert shelf.engine.history(NAMESPACE, "g") == []
    assert shelf.engine.history(NAMESPACE, "h") == [[2]]
    assert shelf.engine.history(NAMESPACE) == [[3]]


@pytest.mark.parametrize("selection", [requests(), requests(group=""), requests(older_than=2**31)])
def test_what_finishes_during_a_deletion_stays_and_can_be_deleted(selection: Selection, shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1], "before", 5)
    shelf.library._keeper.seal_all(NAMESPACE)
    rebuilt = shelf.library._loader.rebuild

    def rebuild(*args: object, **kwargs: object) -> object:
        shelf.engine.finish(NAMESPACE, [2], "meanwhile", 6)
        flush(shelf)
        return rebuilt(*args, **kwargs)  # type: ignore[arg-type]

    shelf.library._loader.rebuild = rebuild  # type: ignore[assignment, method-assign]
    shelf.engine.finish(NAMESPACE, [1], "also before", 5)
    assert shelf.library.delete(selection).documents == 2
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[2]], "it was not there when it was asked for"
    assert shelf.library.delete(requests("meanwhile")) == Deleted(1, 1)
    assert shelf.engine.history(NAMESPACE) == []


def test_deletion_by_age_and_of_all(shelf: Shelf) -> None:
    shelf.engine.finish(NAMESPACE, [1], "r1", 5)
    shelf.engine.finish(NAMESPACE, [2], "r2", 50)
    assert shelf.library.delete(requests(older_than=10)) == Deleted(1, 1)
    assert shelf.engine.history(NAMESPACE) == [[2]]
    assert shelf.library.delete(requests()) == Deleted(1, 1)
    assert shelf.engine.history(NAMESPACE) == []
    assert shelf.files(".segment") == []
    shelf.engine.finish(NAMESPACE, [3], "r3", 60)
    flush(shelf)
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[3]]


def test_open_requests_are_forgotten_too(shelf: Shelf) -> None:
    shelf.engine.unshared = {"secret", "open", "kept"}
    shelf.engine.finish(NAMESPACE, [1], "secret")  # its first part, cut by a head that was full
    flush(shelf)
    assert shelf.library.delete(requests("secret", "open", "unknown")) == Deleted(1, 1, unmatched=("unknown",))
    assert shelf.engine.unshared == {"kept"}
    assert shelf.engine.history(NAMESPACE) == []


def test_a_journal_that_cant_be_written_costs_no_more_than_durability(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.engine.finish(NAMESPACE, [1], "before")
    flush(shelf)
    shelf.engine.finish(NAMESPACE, [2], "secret")
    with monkeypatch.context() as full:
        full.setattr(journal, "Journal", no_space)
        full.setattr("draftd.storage.folder.Journal", no_space)
        flush(shelf)
    assert "history of acme/m: a restart would lose the last outputs" in caplog.text
    assert shelf.library.delete(requests("secret")) == Deleted(1, 1), "it is looked for in the head itself"
    assert shelf.engine.history(NAMESPACE) == [[1]]


def test_a_history_that_cant_be_journalled_costs_the_others_nothing(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.engine.finish(NAMESPACE, [1], "secret", group="no name\n")  # which the engine refuses to begin with
    shelf.engine.finish(NAMESPACE, [2], "kept", group="zoo")
    flush(shelf)
    assert "a restart would lose the last outputs" in caplog.text
    assert b"kept" in b"".join(path.read_bytes() for path in shelf.folder.rglob("journal-*"))


def no_space(*_: object) -> object:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_torn_journal_is_cut_and_said_so(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    shelf.engine.finish(NAMESPACE, [1], "r1")
    flush(shelf)
    shelf.engine.finish(NAMESPACE, [2], "r2")
    flush(shelf)
    (path,) = shelf.files("journal-1")
    path.write_bytes(path.read_bytes()[:-3])
    with caplog.at_level("WARNING"):
        shelf.restart()
    assert "is torn" in caplog.text
    assert shelf.engine.history(NAMESPACE) == [[1]]


@pytest.mark.parametrize("shelf", [SEALING], indirect=True)
@pytest.mark.parametrize("missing", [False, True])
def test_a_damaged_segment_costs_a_history_no_other(missing: bool, shelf: Shelf) -> None:
    for number in (1, 2):
        shelf.engine.finish(NAMESPACE, [number] * 3, f"r{number}", number)
        look_after(shelf)
    shelf.engine.finish(NAMESPACE, [9], "r9", 9)
    flush(shelf)
    collection = shelf.library._keeper._histories[NAMESPACE, ""]
    first = collection.folder.file(collection.held[0].file)
    if missing:
        first.unlink()
    else:
        first.write_bytes(first.read_bytes()[:-8])
    for _ in range(2):
        shelf.restart()
        assert shelf.engine.history(NAMESPACE) == [[2, 2, 2], [9]]
    aside = list((shelf.folder / "quarantine").glob("*"))
    assert [path.name for path in aside] == ([] if missing else [f"{first.parent.name}-{first.name}"])
