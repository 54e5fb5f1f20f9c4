"""N-gram lookup says what its slow twin says, in both of its forms."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftd.native import NgramTexts, ngram_continuation
from draftd.reference import ngram as reference
from draftd.reference.ngram import NgramRule

TOKENS = st.integers(0, 3)
CASES = 100_000
CASES_OF_A_RULE = CASES // 10


@st.composite
def rules(draw: st.DrawFn) -> NgramRule:
    shortest = draw(st.integers(1, 6))
    return NgramRule(shortest, draw(st.integers(shortest, 9)), draw(st.booleans()))


@st.composite
def texts(draw: st.DrawFn) -> list[int]:
    pieces = st.tuples(st.lists(TOKENS, min_size=1, max_size=6), st.sampled_from([1, 2, 9]))
    return [token for unit, times in draw(st.lists(pieces, max_size=4)) for token in unit * times]


@dataclass(frozen=True)
class Row:
    request: int
    taken_back: int
    tokens: list[int]
    most: int


ROWS = st.builds(
    Row,
    st.integers(0, 2),
    st.sampled_from([0, 0, 0, 1, 5, 100]),
    texts() | st.lists(TOKENS, max_size=3),
    st.integers(0, 9),
)


@given(rules(), texts(), st.integers(0, 9))
def test_a_text_seen_once_gets_what_the_definition_says(rule: NgramRule, text: list[int], most: int) -> None:
    assert drafted_at_once(text, rule, most) == reference.continuation(text, rule, most)


@pytest.mark.parametrize("newest", [False, True], ids=["earliest", "newest"])
@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (1, 3), (2, 5), (3, 3), (5, 8)])
def test_many_random_texts(shortest: int, longest: int, newest: bool) -> None:
    """Together CASES; each text is seen once, and growing."""
    rule = NgramRule(shortest, longest, newest)
    random = np.random.default_rng(shortest * 100 + longest * 10 + newest)
    texts = NgramTexts(shortest=shortest, longest=longest, newest=newest)
    for case in range(CASES_OF_A_RULE):
        text = random.integers(0, 1 + random.integers(1, 5), random.integers(0, 24)).tolist()
        most = int(random.integers(0, 9))
        expected = reference.continuation(text, rule, most)
        assert drafted_at_once(text, rule, most) == expected
        middle = len(text) // 2
        propose(texts, [(case, 0, text[:middle], 0)])
        assert propose(texts, [(case, middle, text[middle:], most)]) == [expected]
        texts.forget(np.array([case], np.uint64))


@given(rules(), st.lists(st.lists(ROWS, max_size=4), max_size=6))
@settings(deadline=None)
def test_growing_texts_get_what_the_twin_gives_whatever_is_taken_back(
    rule: NgramRule, batches: list[list[Row]]
) -> None:
    native = NgramTexts(shortest=rule.shortest, longest=rule.longest, newest=rule.newest)
    twin = reference.NgramTexts(rule)
    lengths = dict.fromkeys(range(3), 0)
    for batch in batches:
        rows, expected = [], []
        for row in {row.request: row for row in batch}.values():
            start = max(lengths[row.request] - row.taken_back, 0)
            lengths[row.request] = start + len(row.tokens)
            rows.append((row.request, start, row.tokens, row.most))
            expected.append(twin.propose(*rows[-1]))
        assert propose(native, rows) == expected


@given(rules(), texts())
def test_a_text_told_again_drafts_the_same_and_a_forgotten_one_nothing(rule: NgramRule, text: list[int]) -> None:
    texts = NgramTexts(shortest=rule.shortest, longest=rule.longest, newest=rule.newest)
    first = propose(texts, [(7, 0, text, 8)])
    size = texts.memory_size()
    assert propose(texts, [(7, 0, text, 8)]) == first
    assert texts.memory_size() == size
    texts.forget(np.array([7, 8], np.uint64))
    assert propose(texts, [(7, 0, [], 8)]) == [[]]


def test_what_can_not_be_meant_is_refused_and_nothing_of_it_taken() -> None:
    with pytest.raises(ValueError, match="n-grams of 3 to 2 tokens"):
        NgramTexts(shortest=3, longest=2, newest=False)
    with pytest.raises(ValueError, match="n-grams of 0 to 2 tokens"):
        ngram_continuation([1], 1, shortest=0, longest=2, newest=False)
    with pytest.raises(ValueError, match="1 <= shortest <= longest <= 64"):
        NgramTexts(shortest=3, longest=65, newest=False)
    texts = NgramTexts(shortest=1, longest=2, newest=False)
    with pytest.raises(ValueError, match="row 1 starts at token 3 of a text of which 0 are known"):
        propose(texts, [(1, 0, [5, 5], 8), (2, 3, [6], 8)])
    assert propose(texts, [(1, 0, [], 8)]) == [[]]
    propose(texts, [(7, 0, [1, 2, 3, 1, 2], 8)])
    with pytest.raises(ValueError, match="row 2 is of request 7, as an earlier one"):
        propose(texts, [(7, 0, [9], 8), (8, 0, [1], 8), (7, 5, [4], 8)])
    assert propose(texts, [(7, 5, [], 8)]) == [[3, 1, 2]]
    column = np.array([1], np.uint64), np.array([0], np.uint32), np.array([2], np.uint32)
    with pytest.raises(ValueError, match="token_end ends at 2 of 1 tokens"):
        texts.propose(*column, np.array([5], np.int32), np.array([1], np.uint32))
    with pytest.raises(ValueError, match="most has 0 entries for 1 rows"):
        texts.propose(*column, np.array([5, 6], np.int32), np.array([], np.uint32))


def drafted_at_once(text: list[int], rule: NgramRule, most: int) -> list[int]:
    tokens = np.array(text, np.int32)
    found = ngram_continuation(tokens, most, shortest=rule.shortest, longest=rule.longest, newest=rule.newest)
    drafted: list[int] = found.tolist()
    return drafted


def propose(texts: NgramTexts, rows: list[tuple[int, int, list[int], int]]) -> list[list[int]]:
    """The chain of each (request, start, tokens, most)."""
    ends = np.cumsum([len(tokens) for _, _, tokens, _ in rows], dtype=np.uint32)
    node_end, tokens = texts.propose(
        np.array([request for request, _, _, _ in rows], np.uint64),
        np.array([start for _, start, _, _ in rows], np.uint32),
        ends,
        np.array([token for _, _, tokens, _ in rows for token in tokens], np.int32),
        np.array([most for _, _, _, most in rows], np.uint32),
    )
    return [chain.tolist() for chain in np.split(tokens, node_end[:-1])] if rows else []
