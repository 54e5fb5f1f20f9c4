"""What an engine says of its histories, by the names that requests gave."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from draftd import native
from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import HistoryDocuments, Source

NOON = 1_800_000_000
ACME = Namespace("acme", "model")
RIVAL = Namespace("rival", "model")


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineSettings(), wall_clock=lambda: NOON + 0.7)
    yield engine
    engine.close()


def generate(engine: Engine, namespace: Namespace, request_id: str, output: Sequence[int], group: str = "") -> None:
    """A request that produced `output`, shared on return."""
    with LocalClient(engine, namespace) as client:
        options = {"share": "group", "group": group} if group else {}
        request = client.open(request_id, [], **options)
        request.commit(output)
        request.close()
        client.open("behind it", [], share="none", wait=True)


def drafted(engine: Engine, namespace: Namespace, prompt: Sequence[int]) -> list[int]:
    with LocalClient(engine, namespace) as client:
        draft = client.open("reader", prompt, share="none", wait=True).draft(budget=1)
        return [] if Source.FILL in draft.source else list(draft.tokens)


def documents(namespace: Namespace, texts: Sequence[Sequence[int]], generation: int = 1) -> HistoryDocuments:
    return HistoryDocuments(
        namespace=namespace,
        group="",
        generation=generation,
        token_ids=np.concatenate([np.array(text, np.int32) for text in texts]),
        document_ends=np.cumsum([len(text) for text in texts]),
        labels=["restored"] * len(texts),
        times=np.full(len(texts), NOON),
    )


def segment_of(drained: HistoryDocuments, folder: Path) -> native.Segment:
    builder = native.SegmentBuilder("")
    builder.add(drained.token_ids, drained.document_ends, list(drained.labels), drained.times)
    builder.write(folder / "segment")
    return native.Segment.open(folder / "segment")


def test_a_document_is_known_by_its_request_and_the_time_of_its_close(engine: Engine) -> None:
    generate(engine, ACME, "cmpl-1", [1, 2, 3])
    generate(engine, RIVAL, "cmpl-2", [4, 5], group="team")
    acme, rival = engine.drain_history()
    assert (acme.namespace, acme.group, acme.labels, acme.times.tolist()) == (ACME, "", ["cmpl-1"], [NOON])
    assert (rival.namespace, rival.group, rival.token_ids.tolist()) == (RIVAL, "team", [4, 5])
    assert engine.drain_history() == []
    states = {(state.namespace, state.group): state for state in engine.histories()}
    assert states[RIVAL, "team"].head_tokens == 2
    assert states[RIVAL, "team"].oldest == NOON


def test_a_head_gives_way_to_its_segment(engine: Engine, tmp_path: Path) -> None:
    generate(engine, ACME, "cmpl-1", [1, 2, 3, 4])
    frozen = engine.freeze_history(ACME, "")
    assert frozen is not None
    assert engine.freeze_history(ACME, "") is None
    assert drafted(engine, ACME, [1, 2, 3]) == [4]
    engine.publish_history(ACME, "", [segment_of(frozen, tmp_path)], drop_frozen=True)
    (state,) = engine.histories()
    assert (state.head_tokens, state.frozen_tokens, state.segments) == (0, 0, 1)
    assert drafted(engine, ACME, [1, 2, 3]) == [4]
    engine.publish_history(ACME, "", [], drop_frozen=False)
    assert drafted(engine, ACME, [1, 2, 3]) == []


def test_only_the_owners_requests_are_forgotten(engine: Engine) -> None:
    with LocalClient(engine, ACME) as acme, LocalClient(engine, RIVAL) as rival:
        requests = [client.open("cmpl-1", [1], wait=True) for client in (acme, rival)]
        for other in (Namespace("nobody"), replace(ACME, model="other"), replace(ACME, adapter="other")):
            assert engine.forget_requests(other, None, ["cmpl-1"]) == set()
        assert engine.forget_requests(ACME, "a group", ["cmpl-1"]) == set()
        assert engine.forget_requests(ACME, None, ["cmpl-1", "cmpl-2"]) == {"cmpl-1"}
        for request in requests:
            request.commit([2, 3])
            request.close()
        rival.open("behind them", [], share="none", wait=True)
    (drained,) = engine.drain_history()
    assert drained.namespace == RIVAL


def test_what_is_restored_is_drafted_from_and_not_drained(engine: Engine) -> None:
    engine.restore_history(documents(ACME, [[1, 2, 3], [4, 5, 6]], generation=5))
    (state,) = engine.histories()
    assert (state.generation, state.head_tokens) == (5, 6)
    assert drafted(engine, ACME, [4, 5]) == [6]
    assert engine.drain_history() == []


def test_documents_are_restored_before_there_are_others(engine: Engine) -> None:
    generate(engine, ACME, "cmpl-1", [1, 2, 3])
    with pytest.raises(RuntimeError, match="restore before serving"):
        engine.restore_history(documents(ACME, [[4, 5, 6]]))


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"document_ends": np.array([2])}, "document_ends end at 2 of 3 tokens"),
        ({"document_ends": np.array([0, 3])}, "differ in length"),
        ({"labels": []}, "labels and document_ends differ in length"),
        ({"times": np.array([1, 2])}, "times and document_ends differ in length"),
        ({"token_ids": np.array([1, -2, 3], np.int32)}, "-2 at position 1 is negative"),
    ],
)
def test_columns_that_do_not_fit_are_not_restored(engine: Engine, columns: dict[str, object], complaint: str) -> None:
    whole = documents(ACME, [[1, 2, 3]])
    fields = {name: getattr(whole, name) for name in HistoryDocuments.__slots__}
    with pytest.raises(ValueError, match=complaint):
        engine.restore_history(HistoryDocuments(**fields | columns))
    assert engine.drain_history() == []


@pytest.mark.parametrize("name", ["x" * 257, "two\nlines"])
@pytest.mark.parametrize("of_group", [False, True])
def test_a_name_that_can_not_be_kept_is_refused(engine: Engine, name: str, of_group: bool) -> None:
    with LocalClient(engine, ACME) as client:
        if of_group:
            client.open("request", [1], group=name, share="group", wait=True)
        else:
            client.open(name, [1], wait=True)
    assert engine.statistics().row_errors["INVALID_ARGUMENT"] > 0
    assert engine.statistics().sessions == 0
