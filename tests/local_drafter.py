"""Fixtures of tests that speak to a drafter in the same process: a conftest imports those that its tests name."""

from collections.abc import Iterator

import pytest

from draftd.client.local import LocalChannel
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import Frame


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineSettings())
    yield engine
    engine.close()


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    """What goes out from now on."""
    frames: list[Frame] = []
    send = LocalChannel.send

    def keep(channel: LocalChannel, data: list[bytes], timeout: float) -> bool:
        frames.extend(map(Frame.FromString, data))
        return send(channel, data, timeout)

    monkeypatch.setattr(LocalChannel, "send", keep)
    return frames
