"""Openings and closes that are held: nothing is sent for them, the next step's message takes them along."""

import gc
from pathlib import Path

import pytest

from draftd.client import AsyncClient, Namespace
from draftd.client.client import ChannelClient
from draftd.client.local import LocalChannel
from draftd.client.mirror import Mirror
from draftd.client.mirrors import CLOSES_PER_STEP, MOST_CLOSES
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import CloseReason
from tests.contract.serving import zmq_served
from tests.unit.client.conversation import Conversation

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]


class CountedChannel(LocalChannel):
    """Counts messages, whatever frames they have."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.messages = 0

    def send(self, frames: list[bytes], timeout: float) -> bool:
        self.messages += 1
        return super().send(frames, timeout)


def test_held_openings_and_closes_go_with_one_message() -> None:
    engine = Engine(EngineSettings())
    channel = CountedChannel(engine)
    with ChannelClient(channel, Namespace(), verifier="v", deadline=60.0, vocabulary_size=0) as client:
        first = [client.open(f"first-{number}", TEXT, hold=True) for number in range(3)]
        client.step({request: [4] for request in first})
        assert channel.messages == 1
        for request in first:
            client.close_request(request, hold=True)
        second = [client.open(f"second-{number}", TEXT, hold=True) for number in range(2)]
        drafts = client.step({request: [4] for request in second}, max_nodes=1)
        assert channel.messages == 2
        assert [draft.tokens.tolist() for draft in drafts.values()] == [[5], [5]]
        assert engine.statistics().sessions == 2
    engine.close()


async def test_an_async_client_holds_them_too(tmp_path: Path) -> None:
    engine = Engine(EngineSettings())
    with zmq_served(engine, tmp_path) as endpoint:
        async with AsyncClient(endpoint, deadline=60.0) as client:
            await client.check()
            held = await client.open("held", TEXT, hold=True)
            await client.check()
            assert engine.statistics().sessions == 0
            assert (await held.step([4], 1)).tokens.tolist() == [5]
            await client.close_request(held, hold=True)
            assert engine.statistics().sessions == 1
            await client.check()
            assert engine.statistics().sessions == 0


def test_of_closes_that_never_get_out_the_oldest_are_forgotten() -> None:
    """An engine opens and closes on while no drafter answers."""
    talk = Conversation()
    before = _mirrors_alive()
    for number in range(MOST_CLOSES + 3):
        talk.core.mirrors.close(talk.open(f"r{number}"), CloseReason.FINISHED)
    assert _mirrors_alive() - before == MOST_CLOSES
    request = talk.open("open")
    for _ in range(MOST_CLOSES // CLOSES_PER_STEP):
        talk.step(request)
    told = [sync.request_id for frame in talk.frames for sync in frame.step.sync if sync.request_id != "open"]
    assert told == [f"r{number}" for number in range(3, MOST_CLOSES + 3)]
    assert sum(len(frame.step.close.reason) for frame in talk.frames) == MOST_CLOSES


def _mirrors_alive() -> int:
    gc.collect()
    return sum(type(thing) is Mirror for thing in gc.get_objects())


def test_wait_and_hold_exclude_each_other() -> None:
    engine = Engine(EngineSettings())
    with (
        ChannelClient(LocalChannel(engine), Namespace(), verifier="v", deadline=60.0, vocabulary_size=0) as client,
        pytest.raises(ValueError, match="wait and hold"),
    ):
        client.open("r", TEXT, wait=True, hold=True)
    engine.close()
