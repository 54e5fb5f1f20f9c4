"""Packed columns in a folder: written in parts, read whole, checked."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftd.ingest import SEGMENT, IngestError, SealJob
from draftd.ingest.columns import ColumnsWriter, read_columns
from draftd.ingest.readers import ReadLimits
from draftd.ingest.work import seal
from draftd.native import Segment
from tests.unit.ingest.posts import Listener, load_columns

labels = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8)
document = st.tuples(st.lists(st.integers(0, 2**31 - 2), max_size=8), labels, st.integers(0, 2**40))
parts = st.lists(st.lists(document, max_size=5), max_size=4).filter(
    lambda parts: any(ids for part in parts for ids, *_ in part)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts)
def test_documents_come_back_with_their_labels_and_times(
    tmp_path: Path, parts: list[list[tuple[list[int], str, int]]]
) -> None:
    with ColumnsWriter(tmp_path) as writer:
        for part in parts:
            writer.append(
                np.array([token for ids, *_ in part for token in ids], np.int32),
                np.cumsum([len(ids) for ids, *_ in part], dtype=np.int64),
                [label for _, label, _ in part],
                np.array([time for *_, time in part], np.int64),
            )
    kept = [document for part in parts for document in part if document[0]]
    result = load_columns(tmp_path, tmp_path)
    assert result.documents == [ids for ids, *_ in kept]
    assert result.labels == [label for _, label, _ in kept]
    assert result.segment.times().tolist() == [time for *_, time in kept]


def packed(folder: Path, **columns: list[int] | bytes) -> Path:
    """Columns as they come over the wire."""
    dtypes = {"token_ids": "<i4", "document_ends": "<i8", "label_ends": "<i8", "times": "<i8"}
    with ColumnsWriter(folder) as writer:
        for name, values in columns.items():
            content = values if isinstance(values, bytes) else np.array(values, dtypes[name]).tobytes()
            writer.append_packed(**{name: content})
    return folder


def test_labels_and_times_may_be_left_out(tmp_path: Path) -> None:
    result = load_columns(packed(tmp_path, token_ids=[1, 2, 3], document_ends=[1, 3]), tmp_path)
    assert (result.documents, result.labels) == ([[1], [2, 3]], ["", ""])


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({}, "the corpus is empty"),
        ({"token_ids": b"123"}, "token_ids: 3 bytes are no whole number of 4-byte integers"),
        ({"token_ids": [1, 2]}, "document_ends should grow to 2, the length of token_ids; it ends at 0"),
        ({"token_ids": [1, 2], "document_ends": [1]}, "document_ends should grow to 2"),
        ({"token_ids": [1, 2], "document_ends": [3]}, "document_ends should grow to 2"),
        (
            {"token_ids": [1, 2], "document_ends": [2, 1, 2]},
            "document_ends should grow from 0 to 2",
        ),
        ({"token_ids": [1, 2], "document_ends": [-(2**63), 2]}, "document_ends should grow from 0 to 2, .* it falls"),
        ({"token_ids": [1, -2], "document_ends": [1, 2]}, "document 1, token 0: id -2 is outside the vocabulary"),
        ({"token_ids": [1], "document_ends": [1], "labels": b"x"}, "label_ends: 0 for 1 document"),
        ({"token_ids": [1], "document_ends": [1], "label_ends": [0, 0]}, "label_ends: 2 for 1 document"),
        ({"token_ids": [1], "document_ends": [1], "labels": b"x", "label_ends": [2]}, "label_ends should grow to 1"),
        ({"token_ids": [1], "document_ends": [1], "labels": b"\xff", "label_ends": [1]}, "document 0: .*not UTF-8"),
        ({"token_ids": [1], "document_ends": [1], "labels": b"\a", "label_ends": [1]}, "document 0: id .*be printed"),
        ({"token_ids": [1], "document_ends": [1], "times": [1, 2]}, "times: 2 for 1 document"),
        ({"token_ids": [1] * 1001, "document_ends": [1001]}, "more than 1000 tokens"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    columns: dict[str, list[int] | bytes], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(IngestError, match=complaint):
        load_columns(packed(tmp_path, **columns), tmp_path)


def test_many_documents_come_in_runs_with_their_own_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("draftd.ingest.readers.arrays.RUN_TOKENS", 4)
    documents = [[], [1], [], [], [], [], [2, 3, 4, 5, 6, 7], [8], [], [9]]
    names = "".join(map(str, range(10))).encode()
    ends = np.cumsum([len(ids) for ids in documents])
    folder = packed(
        tmp_path,
        token_ids=[token for ids in documents for token in ids],
        document_ends=ends.tolist(),
        labels=names,
        label_ends=list(range(1, 11)),
    )
    runs = list(read_columns(folder, ReadLimits(100)))
    assert [len(run.document_ends) for run in runs] == [4, 2, 1, 3]
    assert [label for run in runs for label in run.labels or ()] == [f"{number}" for number in range(10)]
    assert [place for run in runs for place in map(run.place, range(len(run.document_ends)))] == [
        f"document {number}" for number in range(10)
    ]
    result = load_columns(folder, tmp_path)
    assert (result.documents, result.labels) == ([ids for ids in documents if ids], ["1", "6", "7", "9"])
    with pytest.raises(IngestError, match=r"document_ends should grow from 0 to 1, .* it falls"):
        list(read_columns(packed(tmp_path, token_ids=[1], document_ends=[1, 1, 1, 1, 0, 1]), ReadLimits(100)))


@pytest.mark.parametrize("labelled", [False, True])
def test_documents_without_a_token_take_no_memory_that_grows_with_them(
    labelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftd.ingest.readers.arrays.RUN_TOKENS", 1 << 14)
    count = 1 << 18
    folder = packed(tmp_path, token_ids=[1], document_ends=np.append(np.zeros(count - 1, "<i8"), 1).tobytes())
    if labelled:
        (folder / "labels").write_bytes(b"x")
        (folder / "label_ends").write_bytes(np.append(np.zeros(count - 1, "<i8"), 1).tobytes())
    tracemalloc.start()
    found = sum(len(run.document_ends) for run in read_columns(folder, ReadLimits(100)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == count
    assert peak < 4 << 20  # that of one run


def test_a_history_is_sealed(tmp_path: Path) -> None:
    with ColumnsWriter(tmp_path) as writer:
        writer.append(np.array([1, 2], np.int32), np.array([2], np.int64), ["request"], np.array([7], np.int64))
    built = seal(SealJob(columns=tmp_path, fingerprint="f", result=tmp_path), Listener())
    segment = Segment.open(tmp_path / SEGMENT)
    assert (built.documents, built.tokens) == (1, 2)
    assert (segment.labels(), segment.times().tolist(), segment.fingerprint) == (["request"], [7], "f")
