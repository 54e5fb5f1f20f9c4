"""What a verify step counts: the longest agreeing root path and one bonus token, never past the recording."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.replay.verification import verify


@pytest.mark.parametrize(
    ("tokens", "parents", "accepted", "emitted", "nodes"),
    [
        pytest.param([], [], 0, 1, 0, id="an empty draft yields the bonus token"),
        pytest.param([9], [-1], 0, 1, 1, id="a wrong draft yields the bonus token"),
        pytest.param([10, 11, 99], [-1, 0, 1], 2, 3, 3, id="a chain is accepted up to the first difference"),
        pytest.param([99, 10, 98, 11], [-1, -1, 1, 1], 2, 3, 4, id="the agreeing branch of a tree is accepted"),
        pytest.param([11], [-1], 0, 1, 1, id="a token in the wrong place counts for nothing"),
        pytest.param([10, 10, 11], [-1, -1, 1], 2, 3, 2, id="duplicate siblings are one node with all their children"),
        pytest.param([10, 11, 12, 2], [-1, 0, 1, 2], 4, 4, 4, id="no bonus token follows the last recorded one"),
        pytest.param([10, 11, 12, 2, 5], [-1, 0, 1, 2, 3], 4, 4, 5, id="nothing is credited past the recording"),
    ],
)
def test_a_step_counts(tokens: list[int], parents: list[int], accepted: int, emitted: int, nodes: int) -> None:
    recorded = [7, 10, 11, 12, 2]
    step = verify(tokens, parents, recorded, position=1)
    assert (step.accepted, step.emitted, step.nodes) == (accepted, emitted, nodes)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    size = draw(st.integers(0, 12))
    parents = [draw(st.integers(-1, node - 1)) for node in range(size)]
    return draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), parents


def root_paths(tokens: list[int], parents: list[int]) -> set[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(tokens, parents, strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    return set(paths)


@given(trees(), st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_a_step_equals_comparing_every_root_path(tree: tuple[list[int], list[int]], recorded: list[int]) -> None:
    paths = root_paths(*tree)
    agreeing = [len(path) for path in paths if path == tuple(recorded[: len(path)])]
    step = verify(*tree, recorded, position=0)
    assert step.accepted == max(agreeing, default=0)
    assert [tree[0][node] for node in step.path] == recorded[: step.accepted]
    assert [tree[1][node] for node in step.path[:1]] == [-1] * len(step.path[:1])
    assert step.emitted == min(step.accepted + 1, len(recorded))
    assert step.nodes == len(paths)
