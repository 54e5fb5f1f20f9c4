"""What namespaces learned, on the disk: written, restored, forgotten, put aside when damaged."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from draftd.corpora.learned import REST_SECONDS
from draftd.ingest import Selection
from draftd.storage import files
from draftd.wire import Namespace
from tests.clock import Clock
from tests.unit.corpora.conftest import NAMESPACE, Shelf

RIVAL = Namespace("rival", "m")


@pytest.fixture
def clock(shelf: Shelf) -> Clock:
    clock = Clock(1000.0)
    shelf.library._learned._clock = clock
    return clock


def whole_history(**fields: object) -> Selection:
    return Selection.model_validate({"tenant": "acme", "model": "m", "history": True} | fields)


def test_it_comes_back_to_its_namespace_after_a_kill(shelf: Shelf) -> None:
    ours, theirs = shelf.engine.teach(NAMESPACE, 5), shelf.engine.teach(RIVAL, 7)
    shelf.library._flush()
    shelf.engine.teach(NAMESPACE, 6)
    shelf.restart()
    assert shelf.engine.models == {NAMESPACE: ours, RIVAL: theirs}


def test_it_is_written_at_most_once_a_minute_and_at_a_stop(shelf: Shelf, clock: Clock) -> None:
    first = shelf.engine.teach(NAMESPACE, 1)
    shelf.library._flush()
    second = shelf.engine.teach(NAMESPACE, 2)
    clock.now += REST_SECONDS - 1
    shelf.library._flush()
    (path,) = shelf.files("learned")
    assert path.read_bytes() == first
    clock.now += 1
    shelf.library._flush()
    assert path.read_bytes() == second
    third = shelf.engine.teach(NAMESPACE, 3)
    shelf.stop()
    assert path.read_bytes() == third


def test_what_did_not_change_is_not_written_again(shelf: Shelf, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.engine.teach(NAMESPACE, 1)
    shelf.library._flush()
    shelf.restart()

    def never(*_: object) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(files, "rename", never)
    shelf.library._learned.flush(all_of_it=True)
    assert not shelf.library._learned._attempts._resting


def test_a_failing_disk_is_a_log_line_and_tried_again(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.engine.finish(NAMESPACE, [1], "r1")
    shelf.library._flush()

    def full(*_: object) -> None:
        raise OSError("no space left")

    learned = shelf.engine.teach(NAMESPACE, 1)
    with monkeypatch.context() as broken:
        broken.setattr("draftd.storage.folder.write_file", full)
        shelf.library._flush()
    assert f"what {NAMESPACE} learned: maintenance failed and is tried again: no space left" in caplog.text
    shelf.library._learned._attempts._resting.clear()
    shelf.library._learned.flush(all_of_it=True)
    (path,) = shelf.files("learned")
    assert path.read_bytes() == learned


def test_it_does_not_stand_in_the_way_of_the_history(shelf: Shelf) -> None:
    learned = shelf.engine.teach(NAMESPACE, 1)
    shelf.library._flush()
    shelf.engine.finish(NAMESPACE, [1, 2], "r1", 5)
    shelf.library._flush()
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1, 2]]
    shelf.library._keeper.seal_all(NAMESPACE)
    shelf.restart()
    assert shelf.engine.history(NAMESPACE) == [[1, 2]]
    assert shelf.engine.models == {NAMESPACE: learned}


@pytest.mark.parametrize("content", [b"", b"nonsense", b"draftdM1" + bytes(100)])
def test_what_is_damaged_is_put_aside_and_learned_anew(
    shelf: Shelf, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.engine.teach(NAMESPACE, 1)
    shelf.engine.finish(NAMESPACE, [1, 2], "r1", 5)
    shelf.library._flush()
    (path,) = shelf.files("learned")
    path.write_bytes(content)
    shelf.restart()
    assert shelf.engine.models == {}
    assert shelf.engine.history(NAMESPACE) == [[1, 2]]
    assert [aside.read_bytes() for aside in (shelf.folder / "quarantine").iterdir()] == [content]
    assert not shelf.files("learned")
    assert f"what {NAMESPACE} learned: learned state: " in caplog.text


def no_file(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unreadable(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(str(path))


@pytest.mark.parametrize("put", [no_file, pipe, unreadable])
def test_what_cannot_be_read_is_put_aside_like_other_damage(
    shelf: Shelf, put: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.engine.teach(NAMESPACE, 1)
    shelf.engine.finish(NAMESPACE, [1, 2], "r1", 5)
    shelf.library._flush()
    (path,) = shelf.files("learned")
    path.unlink()
    monkeypatch.chdir(path.parent)  # names of sockets are short
    put(Path(path.name))
    shelf.restart()
    assert shelf.engine.models == {}
    assert shelf.engine.history(NAMESPACE) == [[1, 2]]
    assert [aside.name for aside in (shelf.folder / "quarantine").iterdir()] == [f"{path.parent.name}-learned"]
    anew = shelf.engine.teach(NAMESPACE, 2)
    shelf.library._flush()
    shelf.restart()
    assert shelf.engine.models == {NAMESPACE: anew}


def test_a_disk_that_cannot_read_it_is_no_end_of_the_server(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.engine.teach(NAMESPACE, 1)
    shelf.library._flush()

    def broken(_: object) -> bytes:
        raise OSError("input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("draftd.storage.folder.CollectionFolder.learned", broken)
        shelf.restart()
    assert shelf.engine.models == {}
    assert len(list((shelf.folder / "quarantine").iterdir())) == 1


def test_deleting_a_whole_history_forgets_it(shelf: Shelf) -> None:
    other_adapter = replace(NAMESPACE, adapter="a")
    kept = {namespace: shelf.engine.teach(namespace, 1) for namespace in (RIVAL, other_adapter)}
    shelf.engine.teach(NAMESPACE, 1)
    shelf.engine.teach(replace(NAMESPACE, tokenizer="fingerprint"), 1)
    shelf.library._flush()
    shelf.library.delete(whole_history())
    assert shelf.engine.models == kept
    assert len(shelf.files("learned")) == len(kept)
    shelf.restart()
    assert shelf.engine.models == kept


@pytest.mark.parametrize("part", [{"request_ids": ["r1"]}, {"older_than": 5}, {"group": "team"}])
def test_deleting_a_part_leaves_it(shelf: Shelf, part: dict[str, object]) -> None:
    learned = shelf.engine.teach(NAMESPACE, 1)
    shelf.library._flush()
    shelf.library.delete(whole_history(**part))
    assert shelf.engine.models == {NAMESPACE: learned}
    assert shelf.files("learned")


def test_what_is_learned_after_a_deletion_is_written_anew(shelf: Shelf, clock: Clock) -> None:
    shelf.engine.teach(NAMESPACE, 1)
    shelf.library._flush()
    shelf.library.delete(whole_history())
    shelf.library._flush()
    assert not shelf.files("learned")
    anew = shelf.engine.teach(NAMESPACE, 1)
    clock.now += REST_SECONDS
    shelf.library._flush()
    assert [path.read_bytes() for path in shelf.files("learned")] == [anew]
