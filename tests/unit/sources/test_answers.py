"""An answer that can't be meant is refused, and the message says what is wrong with it."""

import numpy as np
import pytest

from draftd.sources import Proposals, Shape
from draftd.sources.checks import require_answer
from tests.unit.sources.plain import nature

BUDGET = np.array([2, 0, 3], np.uint32)
CHAINS = nature()
TREES = nature(shape=Shape.TREE, states_survival=True)


def proposals(
    node_end: list[int], tokens: list[int], parents: list[int] | None = None, survival: list[float] | None = None
) -> Proposals:
    return Proposals(
        np.array(node_end, np.uint32),
        np.array(tokens, np.int32),
        None if parents is None else np.array(parents, np.int16),
        None if survival is None else np.array(survival, np.float32),
    )


def test_what_fits_is_taken_as_it_is() -> None:
    chains = proposals([2, 2, 3], [1, 2, 3])
    assert require_answer(chains, CHAINS, BUDGET) is chains
    trees = proposals([2, 2, 5], [1, 2, 3, 4, 5], [-1, -1, -1, 0, 0], [0.5, 0.4, 1.0, 0.9, 0.0])
    assert require_answer(trees, TREES, BUDGET) is trees
    nothing = proposals([0, 0, 0], [])
    assert require_answer(nothing, CHAINS, BUDGET) is nothing


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("nodes", "it answered str, not Proposals"),
        (proposals([2, 2], [1, 2]), r"node_end is uint32\[2\], not uint32\[3\]"),
        (proposals([2, 1, 2], [1, 2]), "row 1 ends before it begins"),
        (proposals([3, 3, 3], [1, 2, 3]), "row 0 has more nodes than it may"),
        (proposals([1, 2, 2], [1, 2]), "row 1 has more nodes than it may"),
        (proposals([1, 1, 2], [1]), r"tokens is int32\[1\], not int32\[2\]"),
        (Proposals(np.array([1, 1, 1], np.uint32), np.array([1])), r"tokens is int64\[1\], not int32\[1\]"),
        (Proposals(np.array([1, 1, 1], np.uint32), [1]), r"tokens is list, not int32\[1\]"),  # type: ignore[arg-type]
        (proposals([1, 1, 3], [1, 2, -3]), "row 2 has a negative token id"),
        (proposals([1, 1, 1], [1], parents=[-1]), "a source of chains states no parents"),
        (proposals([1, 1, 1], [1], survival=[0.5]), "a source that states no survival gave one"),
    ],
)
def test_an_answer_of_chains_that_can_not_be_meant(answer: object, fault: str) -> None:
    with pytest.raises((TypeError, ValueError), match=fault):
        require_answer(answer, CHAINS, BUDGET)


@pytest.mark.parametrize(
    ("parents", "survival", "fault"),
    [
        (None, [0.5, 0.5, 0.5], r"parents is NoneType, not int16\[3\]"),
        ([-1, -1, -1], None, r"survival is NoneType, not float32\[3\]"),
        ([-1, 1, -1], [0.5, 0.5, 0.5], "row 0 has a node before its parent"),
        ([-1, 0, 0], [0.5, 0.5, 0.5], "row 2 has a node before its parent"),
        ([-1, -2, -1], [0.5, 0.5, 0.5], "row 0 has a node before its parent"),
        ([-1, 0, -1], [0.5, 0.6, 0.5], "row 0 has a node that outlives its parent"),
        ([-1, 0, -1], [0.5, 0.5, 1.5], r"row 2 has a survival outside \[0, 1\]"),
        ([-1, 0, -1], [0.5, 0.5, float("nan")], r"row 2 has a survival outside \[0, 1\]"),
    ],
)
def test_an_answer_of_trees_that_can_not_be_meant(
    parents: list[int] | None, survival: list[float] | None, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        require_answer(proposals([2, 2, 3], [1, 2, 3], parents, survival), TREES, BUDGET)
