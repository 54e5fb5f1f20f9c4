"""What tests of real engines share: the model, prompts for it, a server."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

# Before torch is imported: engines start processes of their own, and all of it shares a few cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB

import pytest

from bench.engine_prompts import ends_of_prompts
from draftd.demo.sample import SAMPLE
from draftd.replay.traces import read_trace
from tests.engines.model import model_directory
from tests.faults.process import ServerProcess

PROMPTS = 8
PROMPT_TOKENS = 512


@pytest.fixture(scope="session")
def model_dir() -> Path:
    return model_directory()


@pytest.fixture(scope="session")
def prompts(model_dir: Path) -> list[list[int]]:
    """Ends of recorded code edits, which the model goes on with: int[PROMPTS][PROMPT_TOKENS]."""
    recorded = islice(read_trace(SAMPLE / "code_edit_swe.jsonl.gz"), PROMPTS)
    return ends_of_prompts(recorded, model_dir / "tokenizer.json", PROMPT_TOKENS)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as process:
        yield process


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Engines warn of many things that are not ours to mend."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default"))
