"""The synthetic rule accepts as much as its curve says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.verify.rules import Chance, Proposal, Synthetic
from tests.unit.verify.exhaustive import distribution

DEPTH = 5
CHAIN = Proposal(np.arange(DEPTH, dtype=np.int32), np.arange(-1, DEPTH - 1, dtype=np.int16))
TARGET = np.full((DEPTH + 1, DEPTH), 1 / DEPTH)


def accepted(rule: Synthetic, proposal: Proposal = CHAIN) -> dict[int, float]:
    """How often a step accepts so many tokens."""

    def tokens(chance: Chance) -> int:
        return len(rule.verify(proposal, TARGET, chance).path)

    return distribution(tokens)


@given(st.floats(0.0, DEPTH))
def test_a_staircase_reaches_its_mean_with_two_lengths_side_by_side(mean: float) -> None:
    lengths = accepted(Synthetic.staircase(mean))
    assert sum(length * probability for length, probability in lengths.items()) == pytest.approx(mean, abs=1e-9)
    assert max(lengths) - min(lengths) <= 1


@given(st.lists(st.floats(0.0, 1.0), max_size=DEPTH).map(lambda curve: sorted(curve, reverse=True)))
def test_at_least_so_many_are_accepted_as_often_as_the_curve_says(curve: list[float]) -> None:
    lengths = accepted(Synthetic(curve))
    for place, probability in enumerate(curve):
        at_least = sum(share for length, share in lengths.items() if length > place)
        assert at_least == pytest.approx(probability, abs=1e-9)


def test_it_follows_first_children_and_draws_the_bonus_after_them() -> None:
    tree = Proposal(np.array([0, 1, 2], np.int32), np.array([-1, -1, 0], np.int16))
    target = np.eye(4)
    verdict = Synthetic([1.0, 1.0]).verify(tree, target, _Certain())
    assert (verdict.path, verdict.bonus) == ([0, 2], 3)


class _Certain:
    def happens(self, probability: float) -> bool:
        return probability >= 1.0

    def draw(self, weights: np.ndarray) -> int:
        return int(weights.argmax())


def test_no_more_is_accepted_than_was_drafted() -> None:
    shallow = Proposal(np.array([0], np.int32), np.array([-1], np.int16))
    assert accepted(Synthetic.staircase(3.0), shallow) == {1: 1.0}


@pytest.mark.parametrize("curve", [[0.5, 0.6], [1.1], [0.5, -0.1], [float("nan")]])
def test_a_curve_that_is_none_is_refused(curve: list[float]) -> None:
    with pytest.raises(ValueError, match="falls from 1 to 0"):
        Synthetic(curve)


@pytest.mark.parametrize("mean", [-0.5, float("inf"), float("nan")])
def test_a_mean_that_nothing_can_have_is_refused(mean: float) -> None:
    with pytest.raises(ValueError, match="mean accepted length"):
        Synthetic.staircase(mean)
