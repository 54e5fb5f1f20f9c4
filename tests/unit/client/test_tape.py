"""Drafts that are matched in the client, against a naive twin of the rule in docs/tapes.md."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from draftd.client.tape import LONGEST_MATCH, SEPARATOR, OwnText, Ring, Window, drafted, match_in

tokens = st.lists(st.integers(0, 2), max_size=12)
few_or_many = st.one_of(tokens, st.just([0, 1] * LONGEST_MATCH))


def common_suffix(one: list[int], other: list[int]) -> int:
    length = 0
    while length < min(len(one), len(other), LONGEST_MATCH) and one[-length - 1] == other[-length - 1]:
        length += 1
    return length


def naive_draft(text: list[int], windows: list[list[int]], length: int) -> list[int]:
    """One key for each end position that a token follows; the largest wins."""
    drafted: list[int] = []
    while len(drafted) < length:
        known = text + drafted
        joined = [token for window in windows for token in (SEPARATOR, *window)]
        keys = [(common_suffix(known[:end], known), 1, end) for end in range(1, len(known))]
        keys += [
            (common_suffix(joined[:end], known), 0, end) for end in range(1, len(joined)) if joined[end] != SEPARATOR
        ]
        best, is_own, end = max(keys, default=(0, 0, 0))
        if best == 0:
            break
        source = known if is_own else joined
        for token in source[end : end + length - len(drafted)]:
            if token == SEPARATOR:
                break
            drafted.append(token)
    return drafted


def ring_of(windows: list[list[int]]) -> Ring:
    ring = Ring()
    for window in windows:
        ring.add([Window(np.array(window, np.int32), (1, 1))])
    return ring


@given(few_or_many, st.lists(st.one_of(tokens, few_or_many), max_size=4), st.integers(0, 8))
def test_the_draft_is_what_the_rule_says(text: list[int], windows: list[list[int]], length: int) -> None:
    own = OwnText(np.array(text, np.int32))
    assert drafted(own, ring_of(windows), length) == naive_draft(text, windows, length)
    assert own.tokens.tolist() == text, "what was drafted is no text"


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
    own = OwnText(np.array([1, 2, 5, 6, 1, 2], np.int32))
    assert drafted(own, ring_of([[1, 2, 9]]), 1) == [5]
    assert drafted(own, ring_of([[6, 1, 2, 9]]), 1) == [9]


def test_a_ring_keeps_the_latest_arrivals_and_drops_what_was_taken_away() -> None:
    ring = Ring()
    for arrival in range(10):
        ring.add([Window(np.array([arrival], np.int32), (arrival % 2, 1))])
    assert [window.tokens.tolist() for window in ring] == [[2], [3], [4], [5], [6], [7], [8], [9]]
    ring.add([Window(np.array([50], np.int32), None)])
    assert ring.keep({(1, 1), (0, 2)}) == 4
    assert ring.joined.tolist() == [-1, 3, -1, 5, -1, 7, -1, 9]
