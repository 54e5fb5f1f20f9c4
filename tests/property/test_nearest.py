"""The occurrences nearest to a context are those that a sorted list gives."""

from hypothesis import example, given
from hypothesis import strategies as st

from draftd import native
from draftd.reference.segment import Segment, SegmentSet
from tests.segments import sealed

Document = list[int]

few_ids = st.integers(0, 3)
# Symbols of 1 to 31 bits: a word that is compared at a time holds from many of them to one.
largest_id = st.sampled_from([3, 6, 7, 255, 131_000, 2**19 - 2, 2**21, 2**24, 2**28, 2**31 - 2])


@st.composite
def repetitive(draw: st.DrawFn) -> Document:
    """Longer than the longest match, most of it repeated."""
    return draw(st.lists(few_ids, min_size=1, max_size=4)) * draw(st.integers(1, 40))


documents = st.lists(st.one_of(st.lists(few_ids, max_size=30), repetitive()), max_size=4)


@given(parts=st.lists(documents, max_size=3), context=st.one_of(st.lists(few_ids, max_size=8), repetitive()))
@example(parts=[[[0]]], context=[])
def test_the_nearest_are_those_of_a_sorted_list(parts: list[list[Document]], context: Document) -> None:
    agree([part for part in parts if any(part)], context)


@given(parts=st.lists(documents, min_size=1, max_size=2), context=st.lists(few_ids, max_size=8), data=st.data())
def test_ids_of_any_width_are_compared(parts: list[list[Document]], context: Document, data: st.DataObject) -> None:
    ids = [data.draw(largest_id) - number for number in range(4)]

    def widened(document: Document) -> Document:
        return [ids[token] for token in document]

    # Each segment is as wide as its own largest id: of the context some may be wider than that.
    agree([[widened(document) for document in part] for part in parts if any(part)], widened(context))


def agree(parts: list[list[Document]], context: Document) -> None:
    twin = SegmentSet([Segment(part) for part in parts]).nearest(context)
    found = native.nearest([sealed(part) for part in parts], context)
    assert found == [(occurrence.length, occurrence.age) for occurrence in twin]
