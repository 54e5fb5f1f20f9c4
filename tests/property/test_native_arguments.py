"""What can't be meant is refused by the native core, and the error names it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from draftd import native
from tests.property.rows import packed

ONE_ROW: dict[str, bytes] = {
    "request": packed("<u4", [1]),
    "epoch": packed("<u4", [1]),
    "start": packed("<u4", [0]),
    "token_end": packed("<u4", [2]),
    "tokens": packed("<i4", [5, 6]),
    "tail_base": packed("<u4", [0]),
    "verified": packed("<i4", [-1]),
    "bitmap_end": b"",
    "bitmap": b"",
    "max_nodes": packed("<u2", [8]),
}


def test_one_row_fits() -> None:
    native.StepColumns(**ONE_ROW)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("request", b"\x01\x00\x00"),
        ("epoch", b""),
        ("start", packed("<u4", [1, 2])),
        ("token_end", packed("<u4", [3])),
        ("token_end", packed("<u4", [1])),
        ("tokens", b"\x01"),
        ("tail_base", b""),
        ("verified", packed("<i4", [-3])),
        ("bitmap_end", packed("<u4", [1])),
        ("bitmap_end", packed("<u4", [0, 0])),
        ("bitmap", b"\x01"),
        ("max_nodes", b"\x01"),
    ],
)
def test_a_column_that_does_not_fit_is_named(column: str, value: bytes) -> None:
    with pytest.raises(ValueError, match=column):
        native.StepColumns(**(ONE_ROW | {column: value}))


def test_ends_that_run_backwards_are_refused() -> None:
    two_rows = {name: value * 2 for name, value in ONE_ROW.items()}
    with pytest.raises(ValueError, match="token_end: row 1"):
        native.StepColumns(**(two_rows | {"token_end": packed("<u4", [4, 2])}))


TABLE: dict[str, Any] = {"tokens": packed("<u4", [1, 2]), "micros": packed("<f4", [5.0, 5.0])}


def test_a_flat_table_is_a_table() -> None:
    native.StepCost(**TABLE, widths=packed("<u2", [0, 3]))


@pytest.mark.parametrize(
    ("argument", "value", "named"),
    [
        ("tokens", b"\x01", "column tokens"),
        ("tokens", b"", "without entries"),
        ("tokens", packed("<u4", [1, 2, 3]), "3 tokens for 2 micros"),
        ("tokens", packed("<u4", [0, 2]), "entry 0"),
        ("tokens", packed("<u4", [2, 2]), "entry 1"),
        ("micros", packed("<f4", [0.0, 5.0]), "entry 0"),
        ("micros", packed("<f4", [5.0, np.inf]), "entry 1"),
        ("micros", packed("<f4", [np.nan, 5.0]), "entry 0"),
        ("micros", packed("<f4", [5.0, 4.0]), "entry 1"),
        ("drafting_micros", -1.0, "drafting_micros"),
        ("drafting_micros", float("nan"), "drafting_micros"),
        ("widths", packed("<u2", [3, 3]), "widths: entry 1"),
    ],
)
def test_what_is_no_table_of_costs_is_refused(argument: str, value: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        native.StepCost(**(TABLE | {argument: value}))


@pytest.mark.parametrize("widths", [[], [1, 2]])
def test_a_step_without_rows_costs_nothing_to_draft(widths: list[int]) -> None:
    engine = native.Engine(600.0, 1 << 30, 1 << 30, 64, indexing_thread=False)
    no_rows = native.StepColumns(**dict.fromkeys(ONE_ROW, b""))
    for other_tokens in (0, 1, 5):  # none, some, more than the table knows
        cost = native.StepCost(**TABLE, other_tokens=other_tokens, widths=packed("<u2", widths))
        assert engine.step(1, 0.0, no_rows, 0, 0.0, cost, 3).node_end == b""


def test_a_long_run_that_would_shorten_drafts_is_refused() -> None:
    with pytest.raises(ValueError, match="long_run_factor"):
        native.Engine(600.0, 1 << 30, 1 << 30, 64, indexing_thread=False, long_run_factor=0.5)


def test_a_negative_id_is_named_and_nothing_is_indexed() -> None:
    index = native.Index()
    with pytest.raises(ValueError, match="-7 at position 2"):
        index.append(np.array([1, 2, -7], dtype=np.int32))
    assert index.tokens == 0


@pytest.mark.parametrize("tokens", [np.zeros((2, 2), dtype=np.int32), np.array([1.5]), "text"])
def test_what_is_no_row_of_ids_is_refused(tokens: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        native.Index().append(tokens)


def test_more_corpora_than_a_request_can_read_are_refused() -> None:
    engine = native.Engine(600.0, 1 << 30, 1 << 30, 64, indexing_thread=False)
    namespace = engine.create_namespace()
    for corpus in range(14):
        engine.publish_corpus(namespace, corpus, [])
    with pytest.raises(ValueError, match="at most 14 corpora"):
        engine.publish_corpus(namespace, 14, [])
    engine.publish_corpus(namespace, 0, [])


@pytest.mark.parametrize(
    ("token_ids", "document_ends", "labels", "times", "message"),
    [
        ([1, -2], [2], ["a"], [0], "-2 at position 1"),
        ([1, 2], [1], ["a"], [0], "ends at 1 of 2 token ids"),
        ([1, 2], [2, 1], ["a", "b"], [0, 0], "document 1 ends at 1"),
        ([1, 2], [3], ["a"], [0], "document 0 ends at 3"),
        ([1, 2], [2], [], [0], "differ in length"),
        ([1, 2], [2], ["a"], [0, 0], "differ in length"),
        ([[1, 2]], [2], ["a"], [0], "one dimension"),
        ([1, 2], [2], ["\ud800"], [0], "surrogates"),
    ],
)
def test_documents_that_do_not_fit_are_refused_whole(
    token_ids: list[Any], document_ends: list[int], labels: list[str], times: list[int], message: str
) -> None:
    builder = native.SegmentBuilder("")
    with pytest.raises(ValueError, match=message):
        builder.add(np.array(token_ids, np.int32), np.array(document_ends), labels, np.array(times))
    assert builder.documents == 0


def test_every_document_of_a_copied_segment_has_its_flag(tmp_path: Path) -> None:
    builder = native.SegmentBuilder("")
    builder.add(np.array([1, 2], np.int32), np.array([1, 2]), ["a", "b"], np.array([0, 0]))
    builder.write(tmp_path / "segment")
    with pytest.raises(ValueError, match="1 flags for 2 documents"):
        builder.add_segment(native.Segment.open(tmp_path / "segment"), np.array([True]))


def test_what_is_wrong_with_a_segment_file_is_told_by_kind(tmp_path: Path) -> None:
    builder = native.SegmentBuilder("")
    with pytest.raises(ValueError, match="nothing to write"):
        builder.write(tmp_path / "segment")
    (tmp_path / "segment").write_bytes(b"something else")
    builder.add(np.array([1], np.int32), np.array([1]), ["a"], np.array([0]))
    with pytest.raises(FileExistsError):
        builder.write(tmp_path / "segment")
    with pytest.raises(native.SegmentError, match=f"{tmp_path}/segment: header: "):
        native.Segment.open(tmp_path / "segment")
    with pytest.raises(FileNotFoundError):
        native.Segment.open(tmp_path / "missing")


NODES: dict[str, bytes] = {
    "node_end": packed("<u4", [2]),
    "tokens": packed("<i4", [7, 8]),
    "parents": packed("<i2", [-1, 0]),
    "survival": packed("<f4", [0.5, 0.25]),
}


@pytest.mark.parametrize("left_out", [[], ["parents"], ["survival"], ["parents", "survival"]])
def test_what_a_source_has_fits(left_out: list[str]) -> None:
    redraft(NODES | dict.fromkeys(left_out, b""))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("node_end", b"", "not one row for each"),
        ("node_end", packed("<u4", [3]), "ends at 3 of 2"),
        ("tokens", b"\x01", "column tokens"),
        ("tokens", packed("<i4", [7, -1]), "-1 at position 1"),
        ("parents", packed("<i2", [-1]), "tokens and parents differ"),
        ("parents", packed("<i2", [-1, 1]), "node 1 has no parent before it"),
        ("parents", packed("<i2", [-2, 0]), "node 0 has no parent before it"),
        ("survival", packed("<f4", [0.5]), "tokens and survival differ"),
    ],
)
def test_nodes_of_a_source_that_do_not_fit_are_named(column: str, value: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        redraft(NODES | {column: value})


def test_an_answer_to_another_step_is_refused() -> None:
    with pytest.raises(ValueError, match="column base has 1 entries for 2 rows"):
        redraft(NODES, {name: value * 2 for name, value in ONE_ROW.items()} | {"token_end": packed("<u4", [2, 4])})


def redraft(nodes: dict[str, bytes], rows: dict[str, bytes] | None = None) -> None:
    engine = native.Engine(600.0, 1 << 30, 1 << 28, 64, indexing_thread=False)
    tails = engine.step(1, 0.0, native.StepColumns(**ONE_ROW), 0, 0.0)
    engine.redraft(1, native.StepColumns(**(rows or ONE_ROW)), tails, **nodes, budget=0, min_survival=0.0)
