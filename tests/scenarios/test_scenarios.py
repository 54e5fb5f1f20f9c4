"""Every scenario holds for the native engine and for its slow twin."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from draftd import native
from draftd.reference import engine as reference
from tests.scenarios.language import ScenarioError
from tests.scenarios.player import Player

FOLDER = Path(__file__).parent
OF_AN_ENGINE = [path for path in FOLDER.glob("*/*.txt") if path.parent.name != "schedule"]
SCENARIOS = sorted(path.relative_to(FOLDER).as_posix() for path in OF_AN_ENGINE)


@pytest.mark.parametrize("core", [native, reference], ids=["native", "reference"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, core: ModuleType) -> None:
    Player(core).play(FOLDER / scenario)


def test_a_scenario_that_does_not_hold_is_reported_by_file_and_line(tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.txt"
    scenario.write_text("# A comment.\nopen r1 prompt=[1,2,1] shape=chain -> OK\ndraft r1 nodes=1 -> tokens=[3]\n")
    with pytest.raises(ScenarioError, match=r"wrong\.txt:3: draft r1 nodes=1 -> tokens=\[3\]: tokens: the tail is"):
        Player(reference).play(scenario)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("opne r1 -> OK", "no such command"),
        ("open r1 promt=[1] -> OK", "open knows no promt"),
        ("open -> OK", "names no request"),
        ("open r1 prompt=[1]", "the status is OK"),
        ("open r1 prompt=[1] -> STALE_EPOCH", "the status is OK"),
        ("open r1 prompt=[-1] -> INVALID_TOKEN at 1", "the position is 0"),
        ("statistics sessions=1", "sessions is 0"),
        ("expire -> 1", "0 sessions went"),
        ("  r1 tokens=[1] -> OK", "is indented, but below no step"),
    ],
)
def test_what_is_wrong_is_reported_by_file_and_line(line: str, error: str, tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.txt"
    scenario.write_text(f"\n{line}\n")
    with pytest.raises(ScenarioError, match=re.escape(f"wrong.txt:2: {line.strip()}: {error}")):
        Player(reference).play(scenario)


@pytest.mark.parametrize(
    "expectation",
    [
        "tokens=[9]",
        "nodes=9",
        "nodes<=0",
        "first=9",
        "likeliest=[9]",
        "contains=[9]",
        "without=[2]",
        "leaf=[2]",
        "survival>=0.99",
        "parents=tree",
        "empty NO_MATCH",
        "size=1",
    ],
)
def test_every_expectation_of_a_tail_can_fail(expectation: str, tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.txt"
    scenario.write_text(f"open r1 prompt=[1,2,1,2,1] shape=chain -> OK\ndraft r1 nodes=2 -> {expectation}\n")
    with pytest.raises(ScenarioError, match=r"wrong\.txt:2"):
        Player(reference).play(scenario)
