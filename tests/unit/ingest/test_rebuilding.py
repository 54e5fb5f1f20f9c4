"""Rebuilding: segments into one, without the documents that a selection picks."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from draftd.ingest import SEGMENT, IngestError, RebuildJob, Selection
from draftd.ingest.selection import parsed_selection
from draftd.ingest.work import rebuild
from draftd.native import Segment, SegmentBuilder
from tests.unit.ingest.posts import Listener


def segment(path: Path, *documents: tuple[list[int], str, int]) -> Path:
    builder = SegmentBuilder("f00")
    for ids, label, time in documents:
        builder.add(np.array(ids, np.int32), np.array([len(ids)]), [label], np.array([time]))
    builder.write(path)
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    first = segment(tmp_path / "1", ([1, 2], "a", 10), ([3], "b", 20))
    return first, segment(tmp_path / "2", ([4, 5, 6], "a", 30), ([7], "c", 40))


def labels_after(inputs: tuple[Path, ...], result: Path, dropped: Selection | None) -> list[str]:
    built = rebuild(RebuildJob(inputs=inputs, dropped=dropped, result=result), Listener())
    if built.tokens == 0:
        assert not (result / SEGMENT).exists()
        return []
    rebuilt = Segment.open(result / SEGMENT)
    (result / SEGMENT).unlink()
    assert (built.documents, built.tokens) == (rebuilt.documents, rebuilt.tokens)
    assert rebuilt.fingerprint == "f00"
    return rebuilt.labels()


def test_nothing_dropped_keeps_everything_in_order(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    assert labels_after(inputs, tmp_path, None) == ["a", "b", "a", "c"]


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"document_ids": ("a",)}, ["b", "c"]),
        ({"document_ids": ("a", "c", "x")}, ["b"]),
        ({"document_ids": ()}, ["a", "b", "a", "c"]),
        ({"older_than": 30}, ["a", "c"]),
        ({"document_ids": ("a",), "older_than": 30}, ["b", "a", "c"]),
        ({}, []),
    ],
)
def test_documents_that_fit_every_given_field_go(
    fields: dict[str, object], left: list[str], inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    assert labels_after(inputs, tmp_path, Selection.model_validate({"corpus_id": "c", **fields})) == left


def test_requests_of_a_history_are_picked_by_their_names(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    assert labels_after(inputs, tmp_path, Selection(history=True, request_ids=("b", "c"))) == ["a", "a"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "give either corpus_id or history"),
        ({"corpus_id": "c", "history": True}, "give either corpus_id or history"),
        ({"history": True, "document_ids": ("a",)}, "document_ids are of a corpus"),
        ({"corpus_id": "c", "request_ids": ("a",)}, "group and request_ids are of a history"),
        ({"corpus_id": "c", "group": "g"}, "group and request_ids are of a history"),
        ({"corpus_id": "c", "older": 7}, "older"),
    ],
)
def test_a_selection_means_one_place(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Selection.model_validate(fields)


@pytest.mark.parametrize("older_than", [-60, 2**32, 1_764_000_000_000])
def test_a_time_that_is_none_in_seconds_is_refused(older_than: int) -> None:
    """Milliseconds would pick everything."""
    with pytest.raises(IngestError, match=f"older_than: {older_than} should be a time in unix seconds"):
        parsed_selection({"corpus_id": "c", "older_than": older_than})


@pytest.mark.parametrize("name", ["document_ids", "request_ids", "group", "older_than", "tokenizer"])
def test_null_is_no_way_to_pick_everything(name: str) -> None:
    with pytest.raises(IngestError, match=f"^{name}: is null; leave it out"):
        parsed_selection({"corpus_id": "c", name: None})


def test_a_field_that_is_wrong_is_named() -> None:
    with pytest.raises(IngestError, match=r"^older_than: should be a valid integer"):
        parsed_selection({"corpus_id": "c", "older_than": "yesterday"})
    with pytest.raises(IngestError, match=r"^give either corpus_id or history"):
        parsed_selection({})
