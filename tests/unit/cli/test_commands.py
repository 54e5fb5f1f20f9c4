"""The other commands, as processes."""

import re
from pathlib import Path

from draftd.config import default_config
from tests.unit.cli.processes import draftd, only_line, serving


def test_version() -> None:
    assert re.fullmatch(r"draftd \d+\.\d+\.\d+\n", draftd("--version").stdout)


def test_config_prints_the_default_file_and_serve_takes_it(tmp_path: Path) -> None:
    printed = draftd("config")
    assert (printed.returncode, printed.stdout) == (0, default_config())
    (tmp_path / "draftd.toml").write_text(printed.stdout)
    with serving(tmp_path / "data", "--config", tmp_path / "draftd.toml") as served:
        assert served.stop()[0] == 0


def test_replay_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    absent = tmp_path / "absent.jsonl"
    assert "absent.jsonl" in only_line(draftd("replay", absent))
    assert "--budget" in only_line(draftd("replay", absent, "--budget", "0"))
    assert "not both" in only_line(draftd("replay", absent, "--budget", "4", "--mean-budget", "4"))
    assert "draftd corpus add" in only_line(draftd("replay", absent, "--endpoint", "ipc:///x", "--corpus", absent))
    assert "directory" in only_line(draftd("replay", tmp_path))
    deep = tmp_path / "deep.jsonl"
    deep.write_text("[" * 200_000)
    assert "recursion" in only_line(draftd("replay", deep))
