"""A pytest plugin for the process of the cases: one model runner at a time, and one group of ranks."""

from pathlib import Path

import pytest
from vllm.config import VllmConfig

from tests.engines.vllm_v2.runner import Runner, configured, meet


@pytest.fixture(scope="session")
def config(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> VllmConfig:
    config = configured(model_dir, prompt_lookup_min=2, prompt_lookup_max=6)
    meet(config, f"file://{tmp_path_factory.mktemp('ranks') / 'meeting'}")
    return config


@pytest.fixture
def runner(config: VllmConfig) -> Runner:
    return Runner(config)
