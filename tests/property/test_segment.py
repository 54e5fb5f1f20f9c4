"""A sealed segment holds what its slow twin says, in the file that docs/segment-format.md describes."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pydivsufsort
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from bench.text import trace_documents
from draftd.demo.sample import SAMPLE
from draftd.native import Segment, SegmentBuilder
from draftd.reference import segment as reference
from draftd.reference.segment_file import HEADER_BYTES, SegmentFile

LARGEST_ID = 2**31 - 1
INT64 = st.integers(-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Document:
    tokens: list[int]
    label: str
    time: int


@st.composite
def token_lists(draw: st.DrawFn) -> list[int]:
    """Few ids and many repeats, any ids, or all alike."""
    ids = draw(st.sampled_from([st.integers(0, 2), st.integers(0, LARGEST_ID), st.just(7), st.just(LARGEST_ID)]))
    pieces = st.tuples(st.lists(ids, max_size=6), st.sampled_from([1, 1, 2, 15]))
    return [token for unit, times in draw(st.lists(pieces, max_size=4)) for token in unit * times]


DOCUMENTS = st.builds(Document, token_lists(), st.text(max_size=9), INT64)
COLLECTIONS = st.lists(DOCUMENTS, max_size=6).filter(lambda documents: any(document.tokens for document in documents))


def builder_of(documents: list[Document], fingerprint: str = "") -> SegmentBuilder:
    builder = SegmentBuilder(fingerprint)
    builder.add(
        np.array([token for document in documents for token in document.tokens], np.int32),
        np.cumsum([len(document.tokens) for document in documents], dtype=np.int64),
        [document.label for document in documents],
        np.array([document.time for document in documents], np.int64),
    )
    return builder


def written(builder: SegmentBuilder) -> tuple[Segment, bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "segment"
        builder.write(path)
        return Segment.open(path), path.read_bytes()


@given(COLLECTIONS, st.text(max_size=9))
def test_the_file_holds_what_the_twin_says(documents: list[Document], fingerprint: str) -> None:
    segment, data = written(builder_of(documents, fingerprint))
    twin = reference.Segment(document.tokens for document in documents)
    file = SegmentFile(data)
    assert file.stream == twin.stream
    assert file.entries == twin.entries
    assert file.keys == [key_before(twin, slot, file.width) for slot in twin.entries[::16]]
    assert file.frequent_tokens == segment.frequent_tokens() == twin.frequent_tokens()
    assert file.distinct_tokens == segment.distinct_tokens == twin.distinct_tokens
    assert (segment.tokens, segment.documents) == (twin.tokens, len(twin.documents))
    assert file.fingerprint == segment.fingerprint == fingerprint


def key_before(twin: reference.Segment, slot: int, width: int) -> int:
    symbols = 3 if 3 * width <= 64 else 2
    key = 0
    for symbol in (twin.before(slot) + [0] * symbols)[:symbols]:
        key = key << width | symbol
    return key


@given(COLLECTIONS, st.text(max_size=9))
def test_documents_come_back_as_they_were_added(documents: list[Document], fingerprint: str) -> None:
    segment, data = written(builder_of(documents, fingerprint))
    kept = [document for document in documents if document.tokens]
    assert segment.token_ids().tolist() == [token for document in kept for token in document.tokens]
    assert segment.document_ends().tolist() == np.cumsum([len(document.tokens) for document in kept]).tolist()
    assert segment.labels() == SegmentFile(data).labels == [document.label for document in kept]
    assert segment.times().tolist() == SegmentFile(data).times == [document.time for document in kept]


@given(COLLECTIONS, st.data())
def test_what_is_copied_equals_what_is_built_of_the_kept(documents: list[Document], data: st.DataObject) -> None:
    documents = [document for document in documents if document.tokens]
    segment, _ = written(builder_of(documents))
    keep = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)).filter(any))
    copied = SegmentBuilder("")
    copied.add_segment(segment, np.array(keep))
    kept = [document for document, is_kept in zip(documents, keep, strict=True) if is_kept]
    assert copied.tokens == sum(len(document.tokens) for document in kept)
    assert written(copied)[1] == written(builder_of(kept))[1]


@given(COLLECTIONS)
def test_every_byte_is_under_an_xxh64(documents: list[Document]) -> None:
    _, data = written(builder_of(documents))
    file = SegmentFile(data)
    assert file.header_checksum == xxhash.xxh64_intdigest(data[: HEADER_BYTES - 8])
    end = HEADER_BYTES
    for place in file.places.values():
        assert place.offset == end
        assert place.checksum == xxhash.xxh64_intdigest(data[place.offset : place.padded_end])
        end = place.padded_end
    assert end == file.file_size == len(data)


def random_tokens(alphabet: int, length: int) -> npt.NDArray[np.int32]:
    return np.random.default_rng(1).integers(0, alphabet, length, dtype=np.int32)


def fibonacci_word(length: int) -> npt.NDArray[np.int32]:
    older, word = np.array([0], np.int32), np.array([0, 1], np.int32)
    while len(word) < length:
        older, word = word, np.concatenate([word, older])
    return word[:length]


def real_text() -> npt.NDArray[np.int32]:
    return np.concatenate(trace_documents(SAMPLE))[:200_000]


@pytest.mark.parametrize(
    "tokens",
    [
        pytest.param(random_tokens(2, 50_000), id="random binary"),
        pytest.param(random_tokens(LARGEST_ID, 50_000), id="random ids"),
        pytest.param(np.tile(random_tokens(50, 700), 70), id="periodic"),
        pytest.param(np.tile(np.array([1, 0], np.int32), 25_000), id="abab"),
        pytest.param(fibonacci_word(50_000), id="Fibonacci"),
        pytest.param(np.full(50_000, 3, np.int32), id="all alike"),
        pytest.param(real_text(), id="real text"),
    ],
)
def test_contexts_are_in_the_order_of_another_suffix_sorter(tokens: npt.NDArray[np.int32], tmp_path: Path) -> None:
    builder = SegmentBuilder("")
    builder.add(tokens, np.array([len(tokens)]), [""], np.array([0]))
    builder.write(tmp_path / "segment")
    backwards = np.concatenate([[0], tokens.astype(np.int64) + 1, [0]])[::-1].copy()
    slots = len(backwards) - pydivsufsort.divsufsort(backwards).astype(np.int64)
    slots = slots[slots < len(backwards) - 1]  # the contexts of the separator behind, and of what is behind that
    assert np.array_equal(np.array(SegmentFile((tmp_path / "segment").read_bytes()).entries), slots)
