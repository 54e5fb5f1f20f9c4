"""The draft source `ngram` beside vLLM's own proposer, in a process of its own.

The proposer brings numba along. Where that is loaded before an engine starts, vLLM's warm-up, which looks into every
module, trips over it.
"""

from pathlib import Path

import pytest

from tests.engines.own_process import run_cases


@pytest.mark.timeout(900)  # all cases are this one
def test_all_cases() -> None:
    run_cases(Path(__file__).with_name("cases_ngram_source.py"))
