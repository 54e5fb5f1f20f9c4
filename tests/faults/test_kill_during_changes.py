"""kill -9 while corpora and histories change: nothing acknowledged is lost, nothing is half-visible.

`python -m bench.kill_points --points 200` does the same at many more points."""

from pathlib import Path

import pytest

from bench.kill_points import KINDS, Points


@pytest.mark.parametrize("kind", KINDS)
def test_kill_during(kind: str, tmp_path: Path) -> None:
    points = Points(tmp_path / "data", seed=len(kind))
    try:
        if kind in ("delete", "remove"):
            points.run("merge")  # so that there is something
        points.run(kind)
    finally:
        points.close()
