"""What every draft source promises, of a block drafter with a confidence head."""

from pathlib import Path

import pytest

from draftd.blocks.checkpoint import save_checkpoint
from draftd.sources import REGISTRY
from tests.contract.test_sources import *  # noqa: F403 - every test that is there, and what they need
from tests.contract.test_sources import OFFERED, Make
from tests.engines.blocks.tiny import tiny_drafter


@pytest.fixture(params=[0.0, 1.0], ids=["greedy", "sampled"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    save_checkpoint(tiny_drafter("recurrent"), tmp_path)
    options = {"checkpoint": tmp_path, "temperature": request.param}
    return lambda: REGISTRY.make("block", options, OFFERED)
