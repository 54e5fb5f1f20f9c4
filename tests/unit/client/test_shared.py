"""A client that several threads share: who waits for another's turn waits no longer than the deadline."""

import threading
from collections.abc import Callable, Iterator

import pytest

from draftd.client import Reason, Request
from draftd.client.client import ChannelClient
from draftd.client.local import LocalChannel, LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import Namespace

TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
SHORT, PATIENT = 0.01, 60.0  # seconds


class HeldChannel(LocalChannel):
    """An engine whose answers can be held back."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.engine = engine
        self.answering = threading.Event()
        self.answering.set()
        self.asked = threading.Event()
        self.closed = threading.Event()

    def receive(self, timeout: float) -> bytes | None:
        if timeout > SHORT:
            self.asked.set()
            assert self.answering.wait(timeout)
        return super().receive(timeout)

    def close(self) -> None:
        self.closed.set()


class SharedClient:
    """A client with one request, and a thread that can be made to hold the turn."""

    def __init__(self) -> None:
        self.channel = HeldChannel(Engine(EngineSettings()))
        self.client = ChannelClient(self.channel, Namespace(), verifier="v", deadline=PATIENT, vocabulary_size=0)
        self.request = self.client.open("r", TEXT, wait=True)
        self._holder: threading.Thread | None = None
        self.held_drafts: list[int] = []

    def take_turn(self) -> None:
        self.channel.asked.clear()
        self.channel.answering.clear()
        other = self.client.open("other", TEXT, deadline=PATIENT)
        self._holder = threading.Thread(target=lambda: self.held_drafts.extend(other.draft(2).tokens.tolist()))
        self._holder.start()
        assert self.channel.asked.wait(PATIENT)
        self.client.deadline = SHORT

    def end_turn(self) -> None:
        assert self._holder is not None
        assert not self.held_drafts, "the holder of the turn still waits"
        self.channel.answering.set()
        self._holder.join()
        self.client.deadline = PATIENT
        assert self.held_drafts == [4, 5], "what the others did meanwhile is nothing to him"


@pytest.fixture
def shared() -> Iterator[SharedClient]:
    shared = SharedClient()
    shared.take_turn()
    yield shared
    shared.channel.answering.set()


VERBS: dict[str, Callable[[SharedClient], object]] = {
    "open": lambda shared: shared.client.open("new", TEXT),
    "open and wait": lambda shared: shared.client.open("new", TEXT, wait=True),
    "draft": lambda shared: shared.request.draft(),
    "step": lambda shared: shared.request.step([4]),
    "commit": lambda shared: shared.request.commit([4]),
    "close a request": lambda shared: shared.request.close(),
    "check": lambda shared: shared.client.check(SHORT),
    "health": lambda shared: shared.client.health(),
    "close": lambda shared: shared.client.close(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_waits_for_the_end_of_anothers_turn(shared: SharedClient, verb: str) -> None:
    VERBS[verb](shared)  # returns, although the turn never ends by itself
    shared.end_turn()


def test_an_opening_without_a_turn_is_told_with_the_first_step(shared: SharedClient) -> None:
    new = [shared.client.open("a", TEXT), shared.client.open("b", TEXT, wait=True)]
    shared.end_turn()
    drafts = shared.client.step({request: [4] for request in new}, max_nodes=1)
    assert [draft.tokens.tolist() for draft in drafts.values()] == [[5], [5]]


def test_a_close_without_a_turn_goes_with_the_next_message(shared: SharedClient) -> None:
    shared.request.close()
    assert shared.request.closed
    assert shared.request.draft().reason == Reason.CLOSED
    shared.end_turn()
    assert shared.channel.engine.statistics().sessions == 2
    shared.client.check()
    assert shared.channel.engine.statistics().sessions == 1


def test_a_step_without_a_turn_is_late_and_its_tokens_are_told_later(shared: SharedClient) -> None:
    assert shared.request.step([4]).reason == Reason.LATE
    shared.request.commit([5])
    shared.end_turn()
    draft = shared.request.step([6], budget=2)
    assert (draft.base, draft.tokens.tolist()) == (len(TEXT) + 3, [7, 8])
    assert shared.client.health().counters.late == 1


def test_a_client_closed_during_anothers_turn_closes_its_channel_when_that_ends(shared: SharedClient) -> None:
    shared.client.close()
    assert not shared.channel.closed.is_set()
    shared.end_turn()
    assert shared.channel.closed.is_set()
    assert shared.request.step([4]).reason == Reason.CLOSED


def test_threads_that_open_step_and_close_at_once_keep_mirrors_and_drafter_in_step() -> None:
    shared = SharedClient()
    failures: list[str] = []

    def use(number: int) -> None:
        for repetition in range(30):
            request: Request = shared.client.open(f"r{number}", [number, 90, number], history=False)
            tokens = request.step([90, number], budget=1).tokens.tolist()
            if tokens != [90]:
                failures.append(f"thread {number}, repetition {repetition}: {tokens}")
            request.close()

    threads = [threading.Thread(target=use, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.client.check()
    assert not failures
    assert shared.client.health().counters.row_errors == 0
    assert shared.channel.engine.statistics().sessions == 1


def test_a_request_of_another_client_is_refused_and_takes_no_harm() -> None:
    engine = Engine(EngineSettings())
    with LocalClient(engine) as owner, LocalClient(engine) as other:
        request = owner.open("r", TEXT, wait=True)
        own = other.open("own", TEXT)
        for step in (other.step, other.step_ahead):
            with pytest.raises(ValueError, match="request 'r' was opened by another client"):
                step({request: [4]})
        assert request.length == len(TEXT)
        assert len(request.step([4])) > 0
        assert len(other.step({own: [4]})[own]) > 0
    engine.close()
