"""Every scenario of the adaptive schedule holds."""

import re
from pathlib import Path

import pytest

from tests.scenarios.language import ScenarioError
from tests.scenarios.schedule.schedule_player import SchedulePlayer

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("scenario", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_scenario(scenario: str, tmp_path: Path) -> None:
    SchedulePlayer(tmp_path).play(FOLDER / scenario)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("batch 1 -> nodes=2", "nodes is 3"),
        ("batch 1 -> slot=8", "slot is 1"),
        ("verify 1 accepted=3 times=2 -> nodes=[3,5]", "nodes is [3, 3]"),
        ("verify 1 accepted=3", "expects nothing"),
        ("verfy 1 accepted=3 -> nodes=3", "no such command"),
    ],
)
def test_what_does_not_hold_is_reported_by_file_and_line(line: str, error: str, tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.txt"
    scenario.write_text(f"verifier initial_steps=3\n{line}\n")
    with pytest.raises(ScenarioError, match=re.escape(f"wrong.txt:2: {line}: {error}")):
        SchedulePlayer(tmp_path).play(scenario)
