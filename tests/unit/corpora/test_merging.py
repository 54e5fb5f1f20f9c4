"""Which segments merge."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.corpora.merging import MOST_SEGMENTS, plan_merge


@pytest.mark.parametrize(
    ("tokens", "merged"),
    [
        ((), None),
        ((9, 9, 9, 9), None),
        ((1, 1, 1, 1, 1), slice(0, 5)),
        ((100, 50, 20, 1, 1), slice(3, 5)),
        ((100, 1, 1, 90, 80), slice(1, 3)),
        ((1000, 500, 9, 2, 2), slice(2, 5)),
        ((100, 1, 1, 1, 50, 60), slice(1, 4)),
    ],
)
def test_small_neighbours_merge(tokens: Sequence[int], merged: slice | None) -> None:
    assert plan_merge(tokens) == merged


@given(st.lists(st.integers(1, 1000), min_size=MOST_SEGMENTS + 1, max_size=12))
def test_after_one_merge_there_are_few_enough(tokens: list[int]) -> None:
    run = plan_merge(tokens)
    assert run is not None
    merged = [*tokens[: run.start], sum(tokens[run]), *tokens[run.stop :]]
    assert plan_merge(merged) is None


def test_a_token_is_copied_a_few_times_only() -> None:
    """256 equal loads: merging all of them every time would copy each token 128 times on average."""
    segments: list[int] = []
    copied = 0
    for _ in range(256):
        segments.append(1)
        while (run := plan_merge(segments)) is not None:
            copied += sum(segments[run])
            segments[run] = [sum(segments[run])]
    assert copied / 256 < 6
