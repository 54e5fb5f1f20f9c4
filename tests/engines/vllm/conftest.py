"""Engines that the tests share, and what they answer without speculation.

They live as long as the session: one that ends takes with it what vLLM shares between the engines of a process."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # to see inside; before vllm is imported
with warnings.catch_warnings():
    warnings.simplefilter("default")  # as in the tests
    from tests.engines.vllm.engine import SPECULATION, Engine
from tests.local_drafter import engine, frames

__all__ = ["engine", "frames"]
OUTPUT_TOKENS = 128


@pytest.fixture(scope="session")
def plain(model_dir: Path) -> Iterator[Engine]:
    """Without speculation."""
    with Engine(model_dir) as engine:
        yield engine


@pytest.fixture(scope="session")
def reference(plain: Engine, prompts: list[list[int]]) -> list[list[int]]:
    return plain.generate(prompts, OUTPUT_TOKENS)


@pytest.fixture(scope="session")
def drafting(model_dir: Path) -> Iterator[Engine]:
    """With draftd. At its start there is none, which is no reason not to start."""
    with Engine(model_dir, speculative_config=SPECULATION) as engine:
        yield engine


@pytest.fixture(scope="session")
def cramped(model_dir: Path) -> Iterator[Engine]:
    """With draftd, a KV cache of 24 blocks of 128 tokens, and prompts in pieces, which leave drafts little room."""
    options = {"num_gpu_blocks_override": 24, "max_num_batched_tokens": 600}
    with Engine(model_dir, speculative_config=SPECULATION, **options) as engine:
        yield engine


@pytest.fixture(scope="session")
def adapting(model_dir: Path) -> Iterator[Engine]:
    """With draftd, and room for two LoRA adapters."""
    with Engine(model_dir, speculative_config=SPECULATION, enable_lora=True, max_loras=2) as engine:
        yield engine
