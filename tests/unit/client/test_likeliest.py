"""The likeliest nodes within a budget, against every choice that there is."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.client.likeliest import likeliest, path_survival
from draftd.client.trees import DraftTree


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    """Survivals as a hostile drafter might state them."""
    nodes = draw(st.integers(0, 4))
    parents = [draw(st.integers(-1, node - 1)) for node in range(nodes)]
    survival = [draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan, -1.0])) for _ in range(nodes)]
    return DraftTree(np.zeros(nodes, np.int32), np.array(parents, np.int16), np.array(survival, np.float32))


def is_closed(tree: DraftTree, nodes: tuple[bool, ...]) -> bool:
    return all(parent < 0 or not kept or nodes[parent] for parent, kept in zip(tree.parents, nodes, strict=True))


@given(st.lists(trees(), max_size=3), st.none() | st.integers(0, 8), st.sampled_from([0.0, 0.3, 1.0]))
def test_no_other_choice_within_the_budget_has_more_to_expect(
    batch: list[DraftTree], budget: int | None, least: float
) -> None:
    survivals = [path_survival(tree) for tree in batch]
    kept = likeliest(survivals, budget, least)
    most = budget if budget is not None else math.inf
    likely = np.concatenate([*survivals, np.zeros(0, np.float32)]) >= least
    ends = np.cumsum([0, *map(len, survivals)]).tolist()
    expected = -1.0
    for choice in product(*[(False, True) if may else (False,) for may in likely]):
        rows = [choice[first:end] for first, end in pairwise(ends)]
        if sum(choice) <= most and all(map(is_closed, batch, rows)):
            expected = max(
                expected, sum(float(row[list(nodes)].sum()) for row, nodes in zip(survivals, rows, strict=True))
            )
    assert all(is_closed(tree, tuple(nodes.tolist())) for tree, nodes in zip(batch, kept, strict=True))
    assert sum(map(np.count_nonzero, kept)) == min(most, np.count_nonzero(likely))
    got = sum(float(row[nodes].sum()) for row, nodes in zip(survivals, kept, strict=True))
    assert got == pytest.approx(expected)


def test_rows_of_equally_likely_nodes_share_evenly() -> None:
    kept = likeliest([np.ones(length, np.float32) for length in (5, 1, 5)], 7)
    assert [np.count_nonzero(nodes) for nodes in kept] == [3, 1, 3]
