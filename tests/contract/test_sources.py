"""Every source that can be made without options keeps what all promise, of draftd's own and of installed packages."""

from functools import partial

import pytest

from draftd.sources import REGISTRY, Need
from tests.contract.source_promises import Make, SourcePromises

OFFERED = frozenset({Need.TOKENS})
WITH_A_MODEL = {"draft_model", "block", "block_one_hot"}  # have their own tests in tests/engines, where there is one
NAMES = [name for name in REGISTRY.names() if name not in WITH_A_MODEL and REGISTRY.find(name).nature.needs <= OFFERED]


class TestSources(SourcePromises):
    @pytest.fixture(params=NAMES)
    def make(self, request: pytest.FixtureRequest) -> Make:
        return partial(REGISTRY.make, request.param, {}, OFFERED)
