"""The comparison of proposers, tiny: real engines, a real server."""

import json
import sys
from pathlib import Path

import pytest

from bench import engines

SMALL = ["--prompts", "2", "--prompt-tokens", "64", "--output-tokens", "16", "--workloads", "code_edit_swe"]


def test_engines_with_drafts_and_without_are_compared(
    model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "all.json"
    with pytest.raises(SystemExit) as end:
        engines.main(
            [*SMALL, "--python", sys.executable, "--proposers", "draftd", "--at-once", "2", "--json", str(written)]
        )
    assert end.value.code == 0, capsys.readouterr().out
    alone, drafted = (run["outcome"] for run in json.loads(written.read_text()))
    assert drafted["outputs"] == alone["outputs"]
    assert [len(output) for output in drafted["outputs"]] == [1 + sum(steps) for steps in drafted["emitted"]]
    assert {emitted for steps in alone["emitted"] for emitted in steps} == {1}
    assert drafted["drafted"] > 0
    accepted = sum(emitted - 1 for steps in drafted["emitted"] for emitted in steps)
    assert accepted <= drafted["accepted"] <= drafted["drafted"]  # the engine counts what the length limit cuts, too
    timed = [set(step["micros"]) for step in drafted["steps"]]
    assert timed == [{"echo"} if place % 2 else {"proposer", "core"} for place in range(len(timed))]
