import re
from typing import Any

import numpy as np
import pytest

from draftd.client.mirror import Mirror
from draftd.client.rows import Rows, Verified, Wish, fill_commit, verified_rows, wanted_nodes
from draftd.wire import ALL_VERIFIED, BITMAP_VERIFIED, NO_TAIL, DraftSync, VerifyCommit


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_nodes": -1}, "-1 nodes of one request were asked for"),
        ({"max_nodes": 2**16}, "65536 nodes"),
        ({"max_nodes": 8, "budget": -1}, "budget is -1; give at least 0"),
        ({"max_nodes": 8, "min_survival": 1.5}, "min_survival is 1.5"),
        ({"max_nodes": 8, "min_survival": float("nan")}, "min_survival is nan"),
    ],
)
def test_a_wish_nobody_can_have_is_an_error_that_says_what(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Wish(**arguments)  # type: ignore[arg-type]


def test_a_budget_of_0_asks_for_nothing_and_not_without_limit() -> None:
    assert Wish(8, 0) == Wish(8, np.int64(0)) == Wish(0)  # type: ignore[arg-type]


def test_a_wish_may_come_from_numpy() -> None:
    assert Wish(np.int64(8), np.uint16(9)) == Wish(8, 9)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"max_nodes is 1.5; give a whole number"):
        Wish(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("budget", "shares"), [(4, [2, 1, 1, 0]), (1, [1, 0, 0, 0]), (9, [3, 3, 2, 1])])
def test_parts_of_a_step_wish_for_no_more_than_its_budget(budget: int, shares: list[int]) -> None:
    wishes = Wish(8, budget).shares([2, 2, 2, 1])
    assert [wish.budget or 0 for wish in wishes] == shares
    assert [wish.max_nodes for wish in wishes] == [8 if share else 0 for share in shares]


@pytest.mark.parametrize("tokens", [np.array([[7]]), np.zeros((3, 3, 3), int), np.array(7), 7, None, [[7]], [1.5]])
def test_tokens_that_are_no_row_of_ids_are_an_error_of_one_line(tokens: Any) -> None:
    with pytest.raises(ValueError, match=r"; give a row of token ids$") as error:
        Rows([], [[1, 2], tokens])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("verified", [-3, 2**31, 1.5])
def test_what_is_no_number_of_nodes_and_no_flags_is_an_error(verified: Verified) -> None:
    with pytest.raises(ValueError, match=f"verified is {verified}"):
        verified_rows([], [None, verified])


def commit_of(rows: list[tuple[bool, list[int], Verified]]) -> VerifyCommit:
    """Rows: whether a draft was delivered, the new tokens, what was verified. Each starts at length 5."""
    mirrors = [Mirror(DraftSync(), bytes(4 * 5)) for _ in rows]
    for mirror, (has_tail, _, _) in zip(mirrors, rows, strict=True):
        mirror.tail_base = 5 if has_tail else NO_TAIL
    commit = VerifyCommit()
    verified = verified_rows(mirrors, (verified for _, _, verified in rows))
    fill_commit(commit, Rows(mirrors, [tokens for _, tokens, _ in rows], verified), [5] * len(rows), max_nodes=3)
    return commit


def test_a_commit_speaks_of_the_tail_it_used_and_of_none_when_there_was_none() -> None:
    commit = commit_of([(True, [1], None), (False, [2], None), (True, [], None)])
    assert np.frombuffer(commit.tail_base, "<u4").tolist() == [5, NO_TAIL, NO_TAIL]


def test_verified_is_all_a_number_or_one_flag_per_node() -> None:
    commit = commit_of([(True, [1], None), (True, [2], 2), (True, [3], [True, False, True]), (True, [4], [True])])
    assert np.frombuffer(commit.verified, "<i4").tolist() == [ALL_VERIFIED, 2, BITMAP_VERIFIED, BITMAP_VERIFIED]
    assert np.frombuffer(commit.bitmap_end, "<u4").tolist() == [0, 0, 3, 4]
    assert commit.bitmap == bytes([1, 0, 1, 1])


def test_without_flags_there_is_no_bitmap() -> None:
    commit = commit_of([(True, [1, 2], 1), (True, [3], None)])
    assert np.frombuffer(commit.verified, "<i4").tolist() == [1, ALL_VERIFIED]
    assert np.frombuffer(commit.token_end, "<u4").tolist() == [2, 3]
    assert (commit.bitmap_end, commit.bitmap) == (b"", b"")


def test_numbers_and_flags_may_come_from_numpy() -> None:
    flags, number = np.array([True, False]), np.int64(1)
    commit = commit_of([(True, [1], flags), (True, [2], number)])  # type: ignore[list-item]
    assert np.frombuffer(commit.verified, "<i4").tolist() == [BITMAP_VERIFIED, 1]
    assert commit.bitmap == bytes([1, 0])
    with pytest.raises(ValueError, match="verified is -1"):
        verified_rows([], [np.int64(-1)])  # type: ignore[list-item]


def test_nodes_may_be_wanted_row_by_row() -> None:
    assert wanted_nodes(7, "ab") == (7, None)
    assert wanted_nodes({"a": 2, "b": np.int64(5)}, "abc") == (5, [2, 5, 0])
    assert wanted_nodes({}, "") == (0, [])


@pytest.mark.parametrize("wrong", [-1, 2**16, 1.5])
def test_what_is_no_number_of_nodes_of_a_row_is_an_error(wrong: int) -> None:
    with pytest.raises(ValueError, match=re.escape(str(wrong))):
        wanted_nodes({"a": 2, "b": wrong}, "ab")
