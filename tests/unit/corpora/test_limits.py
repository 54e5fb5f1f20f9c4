"""Corpora and their limits on bytes."""

import pytest

from draftd.corpora import Deleted, OverLimit
from draftd.corpora.merging import MOST_SEGMENTS, MOST_UNMERGED
from draftd.corpora.segments import Fresh
from draftd.corpora.workshop import _Bench
from draftd.ingest import Built, LoaderError
from draftd.wire import Namespace
from tests.unit.corpora.conftest import NAMESPACE, SMALL, Shelf, ids, key

LARGE = {f"{number}": list(range(1000)) * 5 for number in range(10)}  # 50,000 tokens, of some 4 bytes
LARGER = LARGE | {f"more {number}": list(range(1000)) * 5 for number in range(10)}


@pytest.mark.parametrize("shelf", [SMALL], indirect=True)
def test_no_limit_is_passed_and_what_is_full_says_so(shelf: Shelf) -> None:
    used = []

    def watch(_progress: object) -> None:
        used.append(shelf.library._workshop.ledger.used())

    shelf.add(LARGE, on_progress=watch)
    shelf.add(LARGE, on_progress=watch)
    before = shelf.engine.corpus(NAMESPACE, "docs")
    with pytest.raises(
        OverLimit, match=r"acme/m: .*KiB more than .*KiB in use pass .*limits\.namespace_bytes, 1\.0MiB"
    ):
        shelf.add(LARGER, on_progress=watch)
    assert shelf.engine.corpus(NAMESPACE, "docs") == before
    assert max(used) <= 1 << 23
    held = sum(path.stat().st_size for path in shelf.files(".segment"))
    assert held <= shelf.library._workshop.ledger.used() <= 1 << 20
    shelf.library.remove(key())
    assert shelf.library._workshop.ledger.used() == 0
    shelf.add(LARGE)


LONG_IDS = {f"{number:0250}": [1] for number in range(500)}


@pytest.mark.parametrize("form", ["load", "merge", "deletion", "seal"])
def test_what_is_reserved_covers_segments_that_are_mostly_labels(
    form: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved: list[int] = []
    fresh = _Bench.fresh

    def compare(bench: _Bench, built: Built) -> Fresh | None:
        assert bench.charge is not None
        reserved.append(bench.charge.kept)
        assert bench.charge.building > 2 * 250 * 500
        made = fresh(bench, built)
        assert made is not None
        assert made.segment.memory_size <= reserved[-1]
        return made

    for number in range(0 if form in ("load", "seal") else MOST_SEGMENTS + 1):
        shelf.add({label + str(number) if number else label: tokens for label, tokens in LONG_IDS.items()})
    monkeypatch.setattr(_Bench, "fresh", compare)
    if form == "load":
        shelf.add(LONG_IDS)
    elif form == "merge":
        shelf.library._look_after()
    elif form == "deletion":
        shelf.library.delete(ids(next(iter(LONG_IDS))))
    else:
        for label, tokens in LONG_IDS.items():
            shelf.engine.finish(NAMESPACE, tokens, label)
        shelf.library._keeper.seal_all(NAMESPACE)
    assert reserved


@pytest.mark.parametrize("shelf", [SMALL], indirect=True)
def test_a_merge_without_room_waits(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_SEGMENTS + 1):
        shelf.add({f"{number}": list(range(1000)) * 35})
    with caplog.at_level("WARNING"):
        shelf.library._look_after()
    assert "limits.namespace_bytes" in caplog.text
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) == MOST_SEGMENTS + 1


@pytest.mark.parametrize("shelf", [SMALL], indirect=True)
def test_loads_go_on_for_a_while_without_room_to_merge(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("draftd.corpora.library.MOST_WITHOUT_ROOM", MOST_UNMERGED + 2)
    shelf.library._upkeep.stop()  # which loads wake, and which would merge now and then
    for number in range(MOST_UNMERGED):
        shelf.add({f"{number}": [number] * 2000})
    other = shelf.library._workshop.ledger.charge(Namespace("rival", "m"))
    other.hold(0, building=(8 << 20) - shelf.library._workshop.ledger.used() - 50_000)
    shelf.add({"a": [1]})
    shelf.add({"b": [1]})
    assert "limits.process_bytes" in caplog.text
    with pytest.raises(OverLimit, match="process_bytes"):
        shelf.add({"c": [1]})
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) == MOST_UNMERGED + 2
    other.release()
    shelf.add({"c": [1]})
    assert len(shelf.engine.corpora[NAMESPACE]["docs"]) <= MOST_SEGMENTS + 1


def test_a_deletion_needs_no_room(shelf: Shelf) -> None:
    shelf.add({"keep": list(range(1000)) * 200, "secret": [7, 7]})
    shelf.restart(**SMALL)
    ledger = shelf.library._workshop.ledger
    before = ledger.used()
    assert before > (1 << 20) * 2 // 3, "another of its size has no room"
    used = []
    rebuilt = shelf.library._loader.rebuild

    def rebuild(*args: object, **kwargs: object) -> object:
        used.append((ledger.used(), shelf.engine.corpus(NAMESPACE, "docs")))
        return rebuilt(*args, **kwargs)  # type: ignore[arg-type]

    shelf.library._loader.rebuild = rebuild  # type: ignore[assignment, method-assign]
    assert shelf.library.delete(ids("secret")) == Deleted(1, 2)
    assert [texts for _, texts in used] == [[]], "drafts did without it meanwhile"
    assert ledger.used() <= before
    for _ in range(2):
        assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200]
        shelf.restart()
    assert b"secret" not in shelf.bytes_on_disk()


def test_a_deletion_without_room_that_fails_leaves_all_as_it_was(shelf: Shelf) -> None:
    shelf.add({"keep": list(range(1000)) * 200, "secret": [7, 7]})
    shelf.restart(**SMALL)
    before = shelf.library._workshop.ledger.used()

    def fail(*_args: object, **_kwargs: object) -> object:
        raise LoaderError("no")

    shelf.library._loader.rebuild = fail  # type: ignore[assignment, method-assign]
    with pytest.raises(LoaderError):
        shelf.library.delete(ids("secret"))
    assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200, [7, 7]]
    assert shelf.library._workshop.ledger.used() == before


@pytest.mark.parametrize("how", ["a deletion", "the upkeep"])
def test_a_segment_whose_room_was_taken_comes_back(
    how: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("draftd.corpora.upkeep.REST_SECONDS", 0.0)
    shelf.add({"keep": list(range(1000)) * 200, "secret": [7, 7]})
    shelf.restart(**SMALL)
    other = shelf.library._workshop.ledger.charge(NAMESPACE)
    close = _Bench.close

    def fail(*_args: object, **_kwargs: object) -> object:
        raise LoaderError("no")

    def close_and_take_the_room(bench: _Bench) -> None:
        close(bench)
        if bench.charge is not None and shelf.engine.corpus(NAMESPACE, "docs") == []:
            other.hold(1 << 19)

    with monkeypatch.context() as patch:
        patch.setattr(shelf.library._loader, "rebuild", fail)
        patch.setattr(_Bench, "close", close_and_take_the_room)
        with pytest.raises(OverLimit):
            shelf.library.delete(ids("secret"))
    assert shelf.engine.corpus(NAMESPACE, "docs") == []
    shelf.library._look_after()
    assert "corpus 'docs' of acme/m: 200002 tokens are not drafted from until there is room" in caplog.text
    other.release()
    if how == "a deletion":
        shelf.library.delete(ids("secret"))
        assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200]
    else:
        shelf.library._look_after()
        assert shelf.engine.corpus(NAMESPACE, "docs") == [list(range(1000)) * 200, [7, 7]]
        assert shelf.library._workshop.ledger.used() == shelf.engine.corpora[NAMESPACE]["docs"][0].memory_size
