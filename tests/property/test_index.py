"""The native index says what its slow twin says."""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from draftd.native import Index
from draftd.reference import index as reference

UNSEEN_TOKEN = 1_000_000
SEEN_TOKENS = st.integers(0, 3)


@dataclass(frozen=True)
class Append:
    tokens: list[int]


@dataclass(frozen=True)
class EndDocument:
    pass


@dataclass(frozen=True)
class Match:
    context: list[int]


@dataclass(frozen=True)
class MatchOwnText:
    """Asks with what was appended up to some place, followed by other tokens."""

    end: int
    length: int
    suffix: list[int]


Operation = Append | EndDocument | Match | MatchOwnText


@st.composite
def repetitive_texts(draw: st.DrawFn) -> list[int]:
    pieces = st.tuples(st.lists(SEEN_TOKENS, min_size=1, max_size=6), st.sampled_from([1, 2, 20, 70]))
    return [token for unit, times in draw(st.lists(pieces, min_size=1, max_size=4)) for token in unit * times]


def contexts() -> st.SearchStrategy[list[int]]:
    return st.lists(SEEN_TOKENS | st.just(UNSEEN_TOKEN), max_size=80) | repetitive_texts()


def operations() -> st.SearchStrategy[list[Operation]]:
    operation: st.SearchStrategy[Operation] = st.one_of(
        st.builds(Append, repetitive_texts()),
        st.builds(EndDocument),
        st.builds(Match, contexts()),
        st.builds(
            MatchOwnText,
            st.integers(0, 400),
            st.sampled_from([1, 5, 63, 64, 65, 90]),
            st.lists(SEEN_TOKENS, max_size=2),
        ),
    )
    return st.lists(operation, min_size=4, max_size=12)


@given(operations())
def test_index_equals_the_slow_reference_for_any_operations(operations: list[Operation]) -> None:
    native, twin = Index(), reference.Index()
    text: list[int] = []
    for operation in operations:
        match operation:
            case Append(tokens):
                native.append(column(tokens))
                twin.append(tokens)
                text += tokens
            case EndDocument():
                native.end_document()
                twin.end_document()
            case Match(context):
                assert native_levels(native, context) == twin_levels(twin, context)
            case MatchOwnText(place, length, suffix):
                end = place % (len(text) + 1)
                context = text[max(end - length, 0) : end] + suffix
                assert native_levels(native, context) == twin_levels(twin, context)
        native.check_integrity()
        assert (native.tokens, native.documents) == (twin.tokens, twin.documents)


@given(st.lists(SEEN_TOKENS, max_size=200), st.lists(st.integers(0, 200), max_size=4), contexts())
def test_index_does_not_depend_on_how_its_text_arrived(text: list[int], cuts: list[int], context: list[int]) -> None:
    at_once, in_pieces = Index(), Index()
    at_once.append(column(text))
    borders = [0, *sorted(cuts), len(text)]
    for start, end in itertools.pairwise(borders):
        in_pieces.append(column(text[start:end]))
    assert native_levels(at_once, context) == native_levels(in_pieces, context)


@given(st.lists(st.lists(SEEN_TOKENS, min_size=1, max_size=12), min_size=2, max_size=8))
def test_no_match_crosses_the_end_of_a_document(documents: list[list[int]]) -> None:
    native = Index()
    for number, document in enumerate(documents):
        native.append(column([token + 10 * number for token in document]))
        native.end_document()
    for number, document in enumerate(documents[:-1]):
        last, first = document[-1] + 10 * number, documents[number + 1][0] + 10 * (number + 1)
        longest = native.match(column([last, first]))[0]
        assert longest.length == 1
        followers = [
            token for level in native.match(column([last])) if level.length for token, _, _ in level.continuations
        ]
        assert first not in followers


def test_occurrences_are_counted_exactly_up_to_64_tokens() -> None:
    unit = list(range(100))
    native = Index()
    for _ in range(3):
        native.append(column(unit))
    level = native.match(column(unit[:80]))[0]
    assert level.length == 64
    assert [continuation[:2] for continuation in level.continuations] == [(80, 3)]


def column(tokens: list[int]) -> npt.NDArray[np.int32]:
    return np.array(tokens, dtype=np.int32)


def native_levels(index: Index, context: list[int]) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    levels = index.match(column(context))
    assert all(level.distinct == len(level.continuations) for level in levels)
    return [(level.length, level.total, level.continuations) for level in levels]


def twin_levels(index: reference.Index, context: list[int]) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    return [(level.length, level.total, level.continuations) for level in index.match(context)]
