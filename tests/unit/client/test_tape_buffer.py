"""Tapes between a client and an engine: who gets which windows, and what becomes of text that is taken away."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from draftd.client import CostTable, Reason
from draftd.client.local import LocalChannel, LocalClient
from draftd.client.tape import TokenArray, drafted
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import DraftTape, Frame, Hello, Namespace, TailKind
from tests.contract.frames import commit_frame, sync_frame
from tests.segments import sealed

DOCUMENT = list(range(100, 200))
HERE = Namespace(tenant="here", model="m")


class Reader:
    """A request that drafts from tapes; its own text says nothing."""

    def __init__(
        self, engine: Engine, namespace: Namespace = HERE, prompt: Sequence[int] = (1, 2), **options: object
    ) -> None:
        self.client = LocalClient(engine, namespace)
        self.request = self.client.open("r", prompt, wait=True, **options)  # type: ignore[arg-type]

    def step(self, *tokens: int, length: int = 3, tapes: int = 4) -> list[int]:
        self.draft = self.client.step_ahead({self.request: tokens}, max_nodes=length, tapes=tapes)[self.request]
        return self.draft.tokens.tolist()

    def restart(self, drafter: Engine) -> None:
        """From now on that one answers."""
        self.client._line._channel._engine = drafter  # type: ignore[attr-defined]

    @property
    def windows(self) -> list[list[int]]:
        tape = self.request.mirror.tape
        return [window.tokens.tolist() for window in tape.ring if window.origin] if tape else []

    @property
    def dropped(self) -> int:
        return self.client.health().counters.dropped_windows


def change_tapes(monkeypatch: pytest.MonkeyPatch, change: Callable[[DraftTape], None]) -> None:
    """Of every answer from now on."""
    receive = LocalChannel.receive

    def changed(channel: LocalChannel, timeout: float) -> bytes | None:
        data = receive(channel, timeout)
        if data is None:
            return None
        frame = Frame.FromString(data)
        if frame.reply.HasField("tape"):
            change(frame.reply.tape)
        return frame.SerializeToString()

    monkeypatch.setattr(LocalChannel, "receive", changed)


def test_windows_come_with_one_answer_and_serve_from_the_next_step_on(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    assert reader.step(120, 121) == []
    assert reader.draft.reason is Reason.NO_MATCH
    assert reader.step(122) == [123, 124, 125]
    assert reader.windows == [list(range(106, 170))], "16 before, 48 behind, from 122 on"
    assert reader.step(123, 124, 125, 126, 127, 128) == [129, 130, 131], "whatever was accepted"


def test_a_document_that_is_left_out_is_dropped_with_the_next_answer(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT, [1, 2, 50, 51, 52]])])
    reader = Reader(engine)
    reader.step(120)
    assert reader.step(121) == [122, 123, 124]
    engine.publish_corpus(HERE, "c", [sealed([[1, 2, 50, 51, 52]])])
    reader.step(122)
    assert reader.step(123) == []
    assert reader.windows == []
    assert reader.dropped > 0


def test_a_corpus_that_is_withdrawn_goes_and_another_stays(engine: Engine) -> None:
    engine.publish_corpus(HERE, "gone", [sealed([DOCUMENT])])
    engine.publish_corpus(HERE, "stays", [sealed([[7, 8, 9, 10, 11, 12]])])
    reader = Reader(engine)
    reader.step(120)
    reader.step(7)
    assert reader.step(8) == [9, 10, 11]
    engine.withdraw_corpus(HERE, "gone")
    reader.step(120)
    assert reader.step(121) == []
    assert reader.step(9) == [10, 11, 12]
    assert {window[0] for window in reader.windows} == {7}


def test_what_a_history_forgets_is_dropped(engine: Engine) -> None:
    writer = LocalClient(engine, HERE)
    request = writer.open("w", [5], wait=True)
    request.commit(DOCUMENT)
    request.close()
    writer.open("settles", [], share="none", wait=True)
    reader = Reader(engine)
    reader.step(120)
    assert reader.step(121) == [122, 123, 124]
    engine.freeze_history(HERE, "")
    engine.forget_requests(HERE, None, ["w"])
    engine.publish_history(HERE, "", [], drop_frozen=True)
    reader.step(122)
    assert reader.step(123) == []
    assert reader.windows == []


def test_requests_that_do_not_step_drop_theirs_in_the_same_moment(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    other = reader.client.open("other", [1], wait=True)
    reader.step(120)
    reader.client.step_ahead({other: [130]}, max_nodes=3, tapes=4)
    reader.step(121)
    assert other.mirror.tape is not None
    assert len(list(other.mirror.tape.ring)) > 0
    engine.withdraw_corpus(HERE, "c")
    reader.step(122)
    reader.client.check()
    assert list(other.mirror.tape.ring) == []


def test_news_that_got_lost_comes_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    reader.step(120)
    reader.step(121)
    engine.withdraw_corpus(HERE, "c")
    with monkeypatch.context() as losing:
        losing.setattr(LocalChannel, "receive", lambda channel, _: channel._answers.clear())
        reader.step(122)
        reader.client.check(0.01)
    assert reader.dropped == 0
    reader.step(123)
    reader.client.check()
    assert reader.dropped > 0


def test_a_tenant_gets_no_window_of_another(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine, Namespace(tenant="elsewhere", model="m"))
    reader.step(120)
    assert reader.step(121) == []
    assert reader.windows == []


def test_a_request_gets_windows_of_what_it_may_read_alone(engine: Engine) -> None:
    engine.publish_corpus(HERE, "mine", [sealed([[120, 121, 60, 61, 62]])])
    engine.publish_corpus(HERE, "other", [sealed([DOCUMENT])])
    reader = Reader(engine, corpora=["mine"])
    reader.step(120)
    assert reader.step(121) == [60, 61, 62]


def test_a_draft_ends_with_a_stop_id_and_before_the_length_limit(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine, stop_ids=[124])
    reader.step(120)
    assert reader.step(121, length=8) == [122, 123, 124]
    limited = Reader(engine, max_new_tokens=5)
    limited.step(120)
    assert limited.step(121, length=8) == [122, 123]


def test_after_the_drafter_forgot_everything_no_window_is_left(engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    reader.step(120)
    reader.step(121)
    reader.client._core.mirrors.need_sync_all(2**63)
    assert reader.step(122) == []
    assert reader.step(123) == [124, 125, 126]


def test_an_engine_that_wants_none_gets_none(engine: Engine, frames: list[Frame]) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    reader.step(120, tapes=0)
    reader.step(121, tapes=0)
    assert reader.windows == []
    assert frames[-1].step.tape_windows == 0


@pytest.mark.parametrize("wish", [-1, 17])
def test_more_windows_than_there_may_be_are_refused(engine: Engine, wish: int) -> None:
    with pytest.raises(ValueError, match="ask for 0 to 16"):
        Reader(engine).step(1, tapes=wish)


@pytest.mark.parametrize(("accepts", "gets"), [([TailKind.TREE], False), ([TailKind.TREE, TailKind.TAPE], True)])
def test_who_does_not_take_tapes_gets_none(engine: Engine, accepts: list[TailKind], gets: bool) -> None:
    engine.handle(Frame(hello=Hello(protocol=1, incarnation=7, accepts=accepts)).SerializeToString())
    engine.handle(sync_frame(7, 1, [1, 2, 3]))
    wanting = Frame.FromString(commit_frame(7, 2, 3, [], max_nodes=8))
    wanting.step.tape_windows = 4
    reply = Frame.FromString(engine.handle(wanting.SerializeToString()).reply).reply
    assert reply.HasField("tape") == gets


def test_a_kind_that_a_client_does_not_know_is_counted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    receive = LocalChannel.receive

    def with_a_new_kind(channel: LocalChannel, timeout: float) -> bytes | None:
        data = receive(channel, timeout)
        frame = Frame.FromString(data or b"")
        frame.reply.tail.kind = bytes([TailKind.TAPE]) * len(frame.reply.tail.kind)
        return data and frame.SerializeToString()

    monkeypatch.setattr(LocalChannel, "receive", with_a_new_kind)
    client = LocalClient(engine)
    draft = client.open("r", [1, 2, 3, 1, 2], wait=True).draft()
    assert (len(draft), client.health().counters.unknown_tails) == (0, 1)


def set_to(column: str, value: bytes) -> Callable[[DraftTape], None]:
    return lambda tape: setattr(tape, column, value)


@pytest.mark.parametrize(
    "change",
    [
        set_to("tokens", np.array([-5], "<i4").tobytes() * 64),
        set_to("tokens", b"\0"),
        set_to("token_end", b"\xff\xff\xff\xff"),
        set_to("window_end", b"\x09\0\0\0"),
        set_to("window_end", b""),
        set_to("corpus", b""),
        set_to("version", b"\0" * 7),
        set_to("request", b"\0\0\0\0"),
        set_to("reads", b"\0\0\0\0"),
    ],
)
def test_columns_that_disagree_are_counted_and_do_no_harm(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, change: Callable[[DraftTape], None]
) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    change_tapes(monkeypatch, change)
    reader = Reader(engine)
    reader.step(120)
    assert reader.step(121) == []
    assert reader.client.health().counters.unknown_frames == 1
    assert "tapes" in reader.client.health().last_error or "tape" in reader.client.health().last_error


def test_chains_keep_to_the_budget_of_the_step(engine: Engine) -> None:
    client = LocalClient(engine)
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1]
    requests = [client.open(f"r{row}", text, wait=True) for row in range(3)]
    drafts = client.step_ahead({request: [2] for request in requests}, budget=7, max_nodes=4, tapes=4)
    assert [len(draft) for draft in drafts.values()] == [3, 2, 2]
    drafts = client.step_ahead({request: [3] for request in requests}, budget=2, max_nodes=4, tapes=4)
    assert [draft.reason for draft in drafts.values()] == [Reason.NOT_EMPTY, Reason.NOT_EMPTY, Reason.BUDGET_SPENT]


def test_nothing_is_drafted_while_the_drafter_finds_that_it_does_not_pay(engine: Engine) -> None:
    every_token_costs = CostTable([1, 2, 3, 4], [1.0, 100.0, 200.0, 300.0])
    client = LocalClient(engine, pacing="survival", cost=every_token_costs)
    request = client.open("r", [1, 2, 3, 4, 5, 6, 7, 8, 1], wait=True)
    client.step_ahead({request: [2]}, max_nodes=4, tapes=4)
    draft = client.step_ahead({request: [3]}, max_nodes=4, tapes=4)[request]
    assert (len(draft), draft.reason) == (0, Reason.NOT_WORTH_IT)
    draft = client.step_ahead({request: [4]}, max_nodes=4, tapes=4, cost=CostTable([1, 64], [1.0, 1.0]))[request]
    assert draft.reason is Reason.NOT_WORTH_IT, "what is known so far"
    draft = client.step_ahead({request: [5]}, max_nodes=4, tapes=4)[request]
    assert draft.tokens.tolist() == [6, 7, 8, 1]


@pytest.fixture
def next_engine() -> Iterator[Engine]:
    """The drafter after a restart."""
    with closing(Engine(EngineSettings())) as engine:
        engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
        yield engine


def take_away_something(engine: Engine, namespace: Namespace = HERE, times: int = 1) -> None:
    for _ in range(times):
        engine.publish_corpus(namespace, "other", [sealed([[7, 8, 9]])])
        engine.withdraw_corpus(namespace, "other")


def test_after_a_restart_tapes_come_from_the_new_drafter(engine: Engine, next_engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    take_away_something(engine, times=5)
    reader = Reader(engine)
    reader.step(120)
    assert reader.step(121) == [122, 123, 124]
    reader.restart(next_engine)
    for token in range(122, 126):
        reader.step(token)
    assert reader.step(126) == [127, 128, 129]
    next_engine.withdraw_corpus(HERE, "c")
    reader.step(127)
    assert reader.step(128) == [], "its news count from the beginning"
    assert reader.windows == []


def test_after_a_restart_no_request_has_a_window_of_the_old_drafter(engine: Engine, next_engine: Engine) -> None:
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    other = reader.client.open("other", [1], wait=True)
    reader.client.step_ahead({other: [130]}, max_nodes=3, tapes=4)
    reader.step(120)
    assert other.mirror.tape is not None
    reader.restart(next_engine)
    reader.step(121)
    reader.step(122)
    assert other.mirror.tape is None


def test_news_asked_for_in_the_count_of_the_last_drafter_are_asked_for_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer to a step that was under way as the drafter changed."""
    engine.publish_corpus(HERE, "c", [sealed([DOCUMENT])])
    reader = Reader(engine)
    reader.step(120)
    reader.step(121)
    engine.withdraw_corpus(HERE, "c")
    buffer = reader.client._core._tape_buffer
    with monkeypatch.context() as before:
        before.setattr(buffer, "news", 1000)
        reader.step(122)
    reader.client.check()
    assert buffer.news == 0, "that answer is not believed"
    reader.step(123)
    reader.client.check()
    assert (reader.windows, buffer.news) == ([], 1)


def test_a_drafter_tells_who_knows_more_news_than_there_are_everything(engine: Engine) -> None:
    engine.handle(Frame(hello=Hello(protocol=1, incarnation=7)).SerializeToString())
    engine.handle(sync_frame(7, 1, [1, 2, 3]))
    take_away_something(engine, Namespace())
    wanting = Frame.FromString(commit_frame(7, 2, 3, [], max_nodes=8))
    wanting.step.tape_windows = 4
    wanting.step.tape_news = 1000
    reply = Frame.FromString(engine.handle(wanting.SerializeToString()).reply).reply
    assert len(reply.tape.reader) > 0


def test_other_threads_may_use_the_client_while_one_matches(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(engine, prompt=[1, 2, 3, 1, 2])

    def matching(*looked_at: Any) -> TokenArray:
        assert reader.client._line.guard.acquire(blocking=False), "nobody holds it"
        reader.client._line.guard.release()
        return drafted(*looked_at)

    monkeypatch.setattr("draftd.client.tape_buffer.drafted", matching)
    assert reader.step() == [3, 1, 2]


@pytest.mark.parametrize(("share", "own_group"), [("none", []), ("group", [122, 123, 124])])
def test_windows_are_of_histories_that_a_request_reads(engine: Engine, share: str, own_group: list[int]) -> None:
    writer = LocalClient(engine, HERE)
    request = writer.open("w", [5], share=share, group="theirs", wait=True)  # type: ignore[arg-type]
    request.commit(DOCUMENT)
    request.close()
    writer.open("settles", [], share="none", wait=True)
    other = Reader(engine, group="mine")
    member = Reader(engine, group="theirs")
    for reader in (other, member):
        reader.step(120)
    assert (other.step(121), other.windows) == ([], [])
    assert member.step(121) == own_group


def test_a_step_of_no_requests_brings_no_windows(engine: Engine) -> None:
    client = LocalClient(engine)
    assert client.step_ahead({}, max_nodes=8, tapes=4) == {}
    client.check()
    assert client.health().counters.unknown_frames == 0


def test_an_adapter_gets_no_windows_of_another(engine: Engine) -> None:
    engine.publish_corpus(Namespace(tenant="here", model="m", adapter="a"), "c", [sealed([DOCUMENT])])
    reader = Reader(engine, Namespace(tenant="here", model="m", adapter="b"))
    reader.step(120)
    assert reader.step(121) == []
    assert reader.windows == []


def test_a_running_request_that_is_forgotten_leaves_the_windows_of_others(engine: Engine) -> None:
    writer = LocalClient(engine, HERE)
    running = writer.open("w", [5], wait=True)
    running.commit(DOCUMENT)
    running.draft()
    reader = Reader(engine)
    reader.step(120)
    assert reader.step(121) == [122, 123, 124]
    engine.forget_requests(HERE, None, ["w"])
    reader.step(122)
    assert reader.step(123) == []
    assert reader.windows == []
