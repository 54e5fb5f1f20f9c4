"""What can be proposed to a rule, and the dice."""

import numpy as np
import pytest

from draftd.verify.rules import Dice, Proposal, Rejection


def proposal(tokens: list[int], parents: list[int], probabilities: list[list[float]] | None = None) -> Proposal:
    rows = None if probabilities is None else np.array(probabilities)
    return Proposal(np.array(tokens, np.int32), np.array(parents, np.int16), rows)


def test_children_are_by_row_and_in_order() -> None:
    assert proposal([5, 6, 7, 5], [-1, -1, 0, 1]).children == [[0, 1], [2], [3], [], []]


@pytest.mark.parametrize(
    ("tokens", "parents", "probabilities", "complaint"),
    [
        ([1, 2], [-1, 1], None, "node 1 has parent 1; parents come before"),
        ([1], [-2], None, "node 0 has parent -2"),
        ([1, 1], [-1, -1], None, "node 1 repeats token 1 of a sibling"),
        ([1], [-1], [[1.0, 0.0], [0.5, 0.5]], "node 0 has probability 0 of its token 1"),
    ],
)
def test_what_is_no_tree_is_refused(
    tokens: list[int], parents: list[int], probabilities: list[list[float]] | None, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        proposal(tokens, parents, probabilities)


def test_rejection_wants_probabilities() -> None:
    with pytest.raises(ValueError, match="use OneHot without them"):
        Rejection().verify(proposal([1], [-1]), np.full((2, 2), 0.5), Dice(1))


def test_dice_draw_only_what_has_weight_and_decide_the_same_again() -> None:
    weights = np.array([0.0, 3.0, 0.0, 1.0, 0.0])
    drawn = [Dice(seed).draw(weights) for seed in range(400)]
    assert set(drawn) == {1, 3}
    assert drawn == [Dice(seed).draw(weights) for seed in range(400)]


def test_dice_draw_what_has_weight_of_the_smallest_numbers_too() -> None:
    """A share of the smallest number there is rounds to none of it, or to all."""
    weights = np.array([0.0, 5e-324, 0.0])
    assert {Dice(seed).draw(weights) for seed in range(100)} == {1}


def test_dice_know_certainty() -> None:
    dice = Dice(1)
    assert not any(dice.happens(0.0) for _ in range(1000))
    assert all(dice.happens(1.0) for _ in range(1000))
