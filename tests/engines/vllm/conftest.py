"""Engines that the tests share, and what they answer without speculation."""

import os
import warnings
from pathlib import Path

import pytest

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # to see inside; before vllm is imported
with warnings.catch_warnings():
    warnings.simplefilter("default")  # as in the tests
    from tests.engines.vllm.engine import SPECULATION, Engine

OUTPUT_TOKENS = 128


@pytest.fixture(scope="session")
def plain(model_dir: Path) -> Engine:
    """Without speculation."""
    return Engine(model_dir)


@pytest.fixture(scope="session")
def reference(plain: Engine, prompts: list[list[int]]) -> list[list[int]]:
    return plain.generate(prompts, OUTPUT_TOKENS)


@pytest.fixture(scope="session")
def drafting(model_dir: Path) -> Engine:
    """With draftd. At its start there is none, which is no reason not to start."""
    return Engine(model_dir, speculative_config=SPECULATION)


@pytest.fixture(scope="session")
def cramped(model_dir: Path) -> Engine:
    """With draftd, a KV cache of 24 blocks of 128 tokens, and prompts in pieces, which leave drafts little room."""
    return Engine(model_dir, speculative_config=SPECULATION, num_gpu_blocks_override=24, max_num_batched_tokens=600)
