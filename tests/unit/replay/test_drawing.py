"""The drawing shows every workload and the whole, and is the same for the same figures."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from draftd.replay import ReplayError, ReplayResult
from draftd.replay.drawing import draw
from draftd.replay.verification import Verification


def replayed(workload: str) -> ReplayResult:
    result = ReplayResult(workload)
    for survival in np.linspace(0.05, 0.95, 40, dtype=np.float32):
        path = (0, 1) if survival > 0.5 else ()
        result.add_step(Verification(path, len(path) + 1, 2), [-1, 0], np.array([survival, survival / 2], np.float32))
    return result


def words(file: Path) -> str:
    return " ".join(ElementTree.fromstring(file.read_text()).itertext())


def test_all_workloads_and_all_nodes_are_drawn_and_named(tmp_path: Path) -> None:
    draw([replayed("edits"), replayed("rollouts")], tmp_path / "a.svg")
    drawn = words(tmp_path / "a.svg")
    for word in ("edits", "rollouts", "all nodes", "stated survival", "share accepted", "nodes", "share of steps"):
        assert word in drawn
    assert f"Calibration error {replayed('edits').calibration.error:.3f}" in drawn  # both are alike, and so the whole


def test_a_workload_is_named_as_its_file_is(tmp_path: Path) -> None:
    draw([replayed("$x^$"), replayed("<b>&")], tmp_path / "a.svg")
    assert "$x^$" in words(tmp_path / "a.svg")
    assert "<b>&" in words(tmp_path / "a.svg")


def test_a_single_workload_is_the_whole(tmp_path: Path) -> None:
    draw([replayed("edits")], tmp_path / "a.svg")
    assert "all nodes" not in words(tmp_path / "a.svg").replace("over all nodes", "")


def test_the_same_figures_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        draw([replayed("edits")], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no drafted node states a survival"):
        draw([ReplayResult("lookup")], tmp_path / "a.svg")
    with pytest.raises(ReplayError, match="cannot be written"):
        draw([replayed("edits")], tmp_path / "absent" / "a.svg")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ReplayError, match=r"pip install 'draftd\[plots\]'"):
        draw([replayed("edits")], tmp_path / "a.svg")
