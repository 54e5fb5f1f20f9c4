"""Cases that can't share a process with an engine's tests: run in one of their own, as one test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_cases(file: Path, **environment: str) -> None:
    """Raises AssertionError with pytest's own words where a case fails."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "default", "--disable-warnings", str(file)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]
