"""What an upload makes of the states of its job."""

from pathlib import Path
from typing import Any

import pytest

from draftd.cli import upload
from draftd.cli.failure import Interrupted
from draftd.cli.progress import progress_in_bytes
from draftd.cli.upload import Upload
from draftd.ingest.jobs import State


def job(state: State, **figures: object) -> dict[str, Any]:
    return {"id": "j", "state": state, "tokens": 0, "tokens_per_second": 0, "bytes_read": 5, "bytes_total": 9} | figures


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "docs.jsonl").write_text('{"token_ids": [1]}\n')
    return tmp_path / "docs.jsonl"


def interrupted(monkeypatch: pytest.MonkeyPatch, end: State) -> None:
    """Ctrl-C while the server reads; the job has ended so when the server has heard of it."""

    def call(url: str, *_: object, method: str | None = None, **__: object) -> dict[str, Any]:
        assert method in (None, "DELETE")
        return {"job": job(end if method else State.READING, error=None)}

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(upload, "call", call)
    monkeypatch.setattr("time.sleep", interrupt)


def test_an_interrupted_load_says_that_nothing_is_added(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, State.CANCELLED)
    with pytest.raises(Interrupted, match="nothing is added") as caught:
        Upload("http://server", "docs", {}).run([file])
    assert caught.value.exit_code == 130


def test_a_load_that_was_done_before_it_could_be_interrupted_is_added(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, State.DONE)
    assert Upload("http://server", "docs", {}).run([file])["state"] == State.DONE


def test_only_reading_has_a_pace_and_an_end_in_sight() -> None:
    progress = progress_in_bytes()
    progress.add_task("send docs.jsonl", total=7)
    upload._show(progress, job(State.READING, tokens=1000, tokens_per_second=500))
    (line,) = progress.tasks
    assert (line.description, line.total) == ("reading: 1,000 tokens, 500/s", 9)
    for state in (State.WAITING, State.BUILDING, State.DURABLE):
        upload._show(progress, job(state, tokens=1000))
        upload._show(progress, job(state, tokens=2000))
        (line,) = progress.tasks
        assert (line.description, line.total) == (f"{state}: 2,000 tokens", None)
