"""The draft source `ngram` beside vLLM's own proposer, in a process of its own.

The proposer brings numba along. Where that is loaded before an engine starts, vLLM's warm-up, which looks into every
module, trips over it.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CASES = Path(__file__).with_name("cases_ngram_source.py")


def test_all_cases() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "default", "--disable-warnings", str(CASES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]
