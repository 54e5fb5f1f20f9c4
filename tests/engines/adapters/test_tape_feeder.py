"""What ends the thread that feeds tapes ends nothing else."""

import logging
from collections.abc import Sequence

import pytest
import torch

from draftd.adapters.sightings import SeenRow, TextReader
from draftd.adapters.tape_feeder import TapeFeeder
from draftd.client.local import LocalClient
from draftd.engine import Engine
from draftd.kernels.delivery import Arrival
from draftd.wire import Namespace
from tests.engines.kernels.oracle import CPU
from tests.faults.process import until
from tests.local_drafter import engine
from tests.segments import sealed

__all__ = ["engine"]

LOGGER = logging.getLogger("draftd.test_tape_feeder")


def test_a_thread_that_fails_says_so_once_and_takes_no_more(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    def fails(arrivals: Sequence[Arrival]) -> bool:
        raise RuntimeError("the device is gone")

    engine.publish_corpus(Namespace(), "c", [sealed([list(range(1000, 1200))])])
    texts = torch.arange(1010, 1050, dtype=torch.int32).reshape(1, 40)
    reader = TextReader(texts, torch.tensor([40], dtype=torch.int32))
    feeder = TapeFeeder(LocalClient(engine), fails, 4, {"share": "outputs"}, CPU, LOGGER)
    for known_length in (40, None, None):
        feeder.tell(reader.sighting([SeenRow("r", 0, 1, 40, 100, known_length)], torch.tensor([0]), frozenset({"r"})))
    until(lambda: not feeder.has_room)
    feeder.close()
    (said,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert "no more windows" in said.message
    assert "the device is gone" in caplog.text
