from collections.abc import Iterator

import pytest

from tests.clock import Clock
from tests.unit.sources.asking import Hanging


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    source = Hanging()
    yield source
    source.go_on.set()
