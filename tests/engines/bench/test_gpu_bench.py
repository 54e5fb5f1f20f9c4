"""The measurement of the matcher on a device, as far as a machine without one can run it."""

import json
from pathlib import Path

import pytest
import torch

from bench import gpu


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one it would take minutes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_without_a_device_the_twin_is_checked_and_nothing_is_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "all.json"
    with pytest.raises(SystemExit) as end:
        gpu.main(["--json", str(written)])
    said = capsys.readouterr().out
    assert end.value.code == 0, said
    assert "0 of 8 rows differ" in said
    assert "NO CUDA DEVICE" in said
    assert json.loads(written.read_text()) == {"wrong": 0, "cases": []}


def test_a_wrong_draft_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "drafted", lambda *_: [-1] * 8)
    with pytest.raises(SystemExit) as end:
        gpu.main([])
    assert end.value.code == 1
