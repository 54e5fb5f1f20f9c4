"""SGLang's cases, in a process of their own: other engines must not find what stands in for packages built for CUDA."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]


@pytest.mark.timeout(900)  # all of SGLang's are this one
def test_all_cases() -> None:
    cases = sorted(str(file.relative_to(ROOT)) for file in FOLDER.glob("cases_*.py"))
    assert len(cases) == 4
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.engines.sglang.without_gpu",
            "-W",
            "default",
            "--disable-warnings",
            *cases,
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]
