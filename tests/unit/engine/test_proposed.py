"""What became of a source's nodes: which of them are in the draft, went through the target, and have the tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.engine.proposed import Committed, Proposed, depth_along
from draftd.wire import ALL_VERIFIED, BITMAP_VERIFIED, VerifyCommit

Nodes = list[tuple[int, int]]  # of each its parent and its token

TREE: Nodes = [(-1, 5), (-1, 6), (0, 7), (1, 7), (3, 8)]


@pytest.mark.parametrize(("tokens", "depth"), [([], 0), ([9], 0), ([5, 7, 8], 2), ([6, 7, 8], 3), ([6, 7, 8, 9], 3)])
def test_a_tree_has_tokens_as_far_as_a_path_goes(tokens: list[int], depth: int) -> None:
    assert depth_along(TREE, tokens) == depth


def test_what_does_not_count_ends_a_path() -> None:
    assert depth_along([(-1, 5), None, (1, 7)], [5, 7]) == 1
    assert depth_along([None, (0, 7)], [5, 7]) == 0


@st.composite
def trees(draw: st.DrawFn) -> Nodes:
    nodes: Nodes = []
    for _ in range(draw(st.integers(0, 8))):
        node = draw(st.integers(-1, len(nodes) - 1)), draw(st.integers(0, 2))
        if node not in nodes:
            nodes.append(node)
    return nodes


@given(trees(), st.lists(st.integers(0, 2), max_size=6))
def test_the_depth_is_that_of_the_longest_path(nodes: Nodes, tokens: list[int]) -> None:
    paths: list[list[int]] = []
    for parent, token in nodes:
        paths.append([*([] if parent < 0 else paths[parent]), token])
    matching = [len(path) for path in paths if path == tokens[: len(path)]]
    assert depth_along(nodes, tokens) == max(matching, default=0)


def commit(verified: int, bitmap: bytes = b"") -> Committed:
    """Its second row is told of."""
    tokens = np.array([1, 2, 5, 7, 9], "<i4").tobytes()
    message = VerifyCommit(
        token_end=np.array([2, 5], "<u4").tobytes(),
        tokens=tokens,
        verified=np.array([0, verified], "<i4").tobytes(),
        bitmap_end=np.array([0, len(bitmap)], "<u4").tobytes(),
        bitmap=bitmap,
    )
    return Committed(message)


@pytest.mark.parametrize(
    ("verified", "bitmap", "outcome"),
    [
        (ALL_VERIFIED, b"", (3, 2)),
        (2, b"", (2, 1)),
        (0, b"", (0, 0)),
        (BITMAP_VERIFIED, bytes([1, 0, 0, 1]), (2, 2)),
        (BITMAP_VERIFIED, bytes([0, 1, 1, 1]), (2, 0)),
    ],
)
def test_only_what_went_through_the_target_is_accepted(verified: int, bitmap: bytes, outcome: tuple[int, int]) -> None:
    """The draft has an index's node between the source's; one of the source's was left out."""
    draft = [(-1, 5), (-1, 6), (-1, 4), (0, 7)]
    proposed = Proposed.of(np.array([5, 6, 7, 8], np.int32), np.array([-1, -1, 0, 2], np.int16), draft)
    assert proposed.places == [0, 1, 3, -1]
    assert proposed.outcome(commit(verified, bitmap), 1) == outcome
    assert commit(verified).tokens(1) == [5, 7, 9]
