"""Drafts that are matched in the client, against a naive twin of the rule in docs/tapes.md."""

from itertools import takewhile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.client.tape import LONGEST_MATCH, MOST_POSITIONS, SEPARATOR, OwnText, Ring, Window, drafted, match_in

tokens = st.lists(st.integers(0, 2), max_size=12)
few_or_many = st.one_of(tokens, st.just([0, 1] * LONGEST_MATCH))


def common_suffix(one: list[int], other: list[int]) -> int:
    length = 0
    while length < min(len(one), len(other), LONGEST_MATCH) and one[-length - 1] == other[-length - 1]:
        length += 1
    return length


def naive_draft(text: list[int], windows: list[list[int]], length: int) -> list[int]:
    first = naively_continued(text, windows, length)
    return first + naively_continued(text + first, windows, length - len(first)) if first else first


def naively_continued(text: list[int], windows: list[list[int]], length: int) -> list[int]:
    """One key for each end position that a token follows; the largest wins."""
    joined = [token for window in windows for token in (SEPARATOR, *window)]
    keys = [(common_suffix(text[:end], text), 1, end) for end in range(1, len(text))]
    keys += [(common_suffix(joined[:end], text), 0, end) for end in range(1, len(joined)) if joined[end] != SEPARATOR]
    best, is_own, end = max(keys, default=(0, 0, 0))
    if best == 0:
        return []
    if not is_own:
        return list(takewhile(lambda token: token != SEPARATOR, joined[end : end + length]))
    drafted = list(text)
    for place in range(end, end + length):
        drafted.append(drafted[place])
    return drafted[len(text) :]


def ring_of(windows: list[list[int]]) -> Ring:
    ring = Ring()
    for window in windows:
        ring.add([Window(np.array(window, np.int32), (1, 1))])
    return ring


@given(few_or_many, st.lists(st.one_of(tokens, few_or_many), max_size=4), st.integers(0, 8))
def test_the_draft_is_what_the_rule_says(text: list[int], windows: list[list[int]], length: int) -> None:
    assert drafted(np.array(text, np.int32), ring_of(windows).joined, length).tolist() == naive_draft(
        text, windows, length
    )


@given(st.lists(st.lists(st.integers(0, 9), max_size=80), max_size=6), st.integers(0, 300))
def test_the_own_text_grows_and_is_cut(pieces: list[list[int]], length: int) -> None:
    own, text = OwnText(np.zeros(0, np.int32)), []
    for piece in pieces:
        own.append(piece)
        text += piece
    own.cut(length)
    own.append([7])
    assert own.tokens.tolist() == [*text[:length], 7]


def test_the_longest_match_wins_of_equals_the_last() -> None:
    assert match_in(np.array([1, 2, 3, 9, 2, 3, 8]), np.array([1, 2, 3])) == (3, 3)
    assert match_in(np.array([2, 3, 9, 2, 3, 8]), np.array([1, 2, 3])) == (2, 5)
    assert match_in(np.array([2, 3]), np.array([1, 2, 3])) == (0, 0), "nothing follows"


def test_the_own_text_wins_where_a_window_matches_no_further() -> None:
    own = np.array([1, 2, 5, 6, 1, 2], np.int32)
    assert drafted(own, ring_of([[1, 2, 9]]).joined, 1).tolist() == [5]
    assert drafted(own, ring_of([[6, 1, 2, 9]]).joined, 1).tolist() == [9]


def test_a_match_in_the_own_text_goes_on_in_the_draft() -> None:
    assert drafted(np.array([7, 1, 2, 1, 2], np.int32), ring_of([]).joined, 5).tolist() == [1, 2, 1, 2, 1]


def test_where_a_window_ends_there_is_one_more_match() -> None:
    windows = ring_of([[3, 4, 5, 6], [2, 3, 4], [5, 6, 7, 8]])
    assert drafted(np.array([1, 2, 3], np.int32), windows.joined, 9).tolist() == [4, 5, 6]


def test_the_last_positions_count_where_more_agree_than_are_looked_at() -> None:
    text = np.array([9, 5, 5, 8, *[5, 5, 6] * MOST_POSITIONS, 9, 5, 5], np.int32)
    assert drafted(text, ring_of([]).joined, 1).tolist() == [6], "not 8, which matches further"


class CountedTokens(np.ndarray[tuple[int, ...], np.dtype[np.int32]]):
    """Counts the tokens that are compared or copied."""

    work = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(each) for each in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        CountedTokens.work += np.size(result)
        return result

    def __getitem__(self, key: Any) -> Any:
        result = super().__getitem__(key)
        if not isinstance(key, slice):
            CountedTokens.work += np.size(result)
        return result


def fibonacci_word(length: int) -> list[int]:
    shorter, word = [0], [0, 1]
    while len(word) < length:
        shorter, word = word, word + shorter
    return word[:length]


@pytest.mark.parametrize("text", [[5] * 20_000, [5, 6] * 10_000, fibonacci_word(20_000)], ids=["aaaa", "abab", "abaab"])
def test_the_work_does_not_grow_with_repetition_or_the_draft(text: list[int]) -> None:
    CountedTokens.work = 0
    counted = np.array(text, np.int32).view(CountedTokens)
    assert len(drafted(counted, ring_of([[5, 6, 5, 6]]).joined, 64)) == 64
    assert CountedTokens.work < 4 * len(text) + 2 * LONGEST_MATCH * MOST_POSITIONS


def test_a_ring_keeps_the_latest_arrivals_and_drops_what_was_taken_away() -> None:
    ring = Ring()
    for arrival in range(10):
        ring.add([Window(np.array([arrival], np.int32), (arrival % 2, 1))])
    assert [window.tokens.tolist() for window in ring] == [[2], [3], [4], [5], [6], [7], [8], [9]]
    ring.add([Window(np.array([50], np.int32), None)])
    assert ring.keep({(1, 1), (0, 2)}) == 4
    assert ring.joined.tolist() == [-1, 3, -1, 5, -1, 7, -1, 9]
