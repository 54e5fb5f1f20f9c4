"""Priors are learned from the recordings that are asked for, and from no other."""

from pathlib import Path

import pytest

from bench import train_priors
from bench.train_priors import main, priors_without, source_of, train
from draftd import native
from draftd.demo.sample import trace_files
from draftd.priors import read_priors


@pytest.fixture(autouse=True)
def of_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_priors, "REQUESTS", 2)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Two recordings of one source, and one of another."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for file in trace_files():
        if file.name.startswith(("math_", "rl_game24", "rl_code")):
            (folder / file.name).symlink_to(file)
    return folder


def test_sources_are_left_out_whole(traces: Path, tmp_path: Path) -> None:
    path = priors_without(traces, "math_gsm8k_multi", tmp_path / "cache")
    others = [file for file in trace_files(traces) if not file.name.startswith("math_")]
    assert 0 < len(others) < len(trace_files(traces)) - 1
    empty = tmp_path / "empty"
    empty.mkdir()
    assert read_priors(path) == train(others, empty).save()
    assert not [file for file in (tmp_path / "cache").iterdir() if file.name.startswith("math_")]


def test_what_is_there_is_not_learned_again(traces: Path, tmp_path: Path) -> None:
    path = priors_without(traces, "math_gsm8k_multi", tmp_path)
    written = path.stat().st_mtime_ns
    assert priors_without(traces, "math_tool_tora", tmp_path) == path, "it is of the same source"
    assert path.stat().st_mtime_ns == written


def test_no_recording_says_much(traces: Path, tmp_path: Path) -> None:
    learned, start = train(trace_files(traces), tmp_path), native.Model()
    more = learned.trials - start.trials
    assert 0 < more.max() <= 4.001
    for first, end in train_priors.prompt_cells():
        assert not more[first:end].any()
    assert 0 < abs(learned.agreement - start.agreement).max() < 1


def test_the_file_that_is_shipped_knows_no_chats(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (game,) = (file for file in trace_files(traces) if "game24" in file.name)
    (traces / "chat_open.jsonl.gz").symlink_to(game.resolve())
    out = tmp_path / "priors"
    main(["--traces", str(traces), "--out", str(out)])
    native.Model.load(read_priors(out))
    assert "learned from" in (printed := capsys.readouterr().out)
    assert "chat" not in printed


@pytest.mark.parametrize(
    ("recordings", "words"),
    [
        ({}, "no *.jsonl.gz or *.jsonl in this folder"),
        ({"mine.jsonl": "{}"}, "mine.jsonl:1: `id` must be a string"),
        ({"mine.jsonl.gz": "no gzip"}, "mine.jsonl.gz: Not a gzipped file"),
        ({"chat_mine.jsonl": ""}, "no recording is left without chat"),
    ],
)
def test_a_folder_to_learn_nothing_from_is_named_in_one_line(
    recordings: dict[str, str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in recordings.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit, match="1"):
        main(["--traces", str(tmp_path), "--out", str(tmp_path / "priors")])
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not (tmp_path / "priors").exists()


@pytest.mark.parametrize(
    ("workload", "source"),
    [("agent_swe", "swe"), ("code_edit_swe", "swe"), ("agent_tau_airline", "agent_tau_airline"), ("chat_x", "chat")],
)
def test_of_which_source_a_workload_is(workload: str, source: str) -> None:
    assert source_of(workload) == source
