"""Every scenario holds for the native engine and for its slow twin."""

from pathlib import Path
from types import ModuleType

import pytest

from draftd import native
from draftd.reference import engine as reference
from tests.scenarios.language import ScenarioError
from tests.scenarios.player import Player

FOLDER = Path(__file__).parent
SCENARIOS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.txt"))


@pytest.mark.parametrize("core", [native, reference], ids=["native", "reference"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, core: ModuleType) -> None:
    Player(core).play(FOLDER / scenario)


def test_a_scenario_that_does_not_hold_is_reported_by_file_and_line(tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.txt"
    scenario.write_text("# A comment.\nopen r1 prompt=[1,2,1] shape=chain -> OK\ndraft r1 nodes=1 -> tokens=[3]\n")
    with pytest.raises(ScenarioError, match=r"wrong\.txt:3: draft r1 nodes=1 -> tokens=\[3\]: tokens: the tail is"):
        Player(reference).play(scenario)


def test_an_unknown_command_is_reported_by_file_and_line(tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.txt"
    scenario.write_text("\nopne r1 -> OK\n")
    with pytest.raises(ScenarioError, match=r"wrong\.txt:2: opne r1 -> OK: no such command"):
        Player(reference).play(scenario)
