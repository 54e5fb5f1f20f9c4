"""Block verification accepts at least what verification token by token does: computed, not sampled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.verify.rules import Block, Chance, Proposal, Rejection, Rule
from tests.unit.verify.exhaustive import distribution
from tests.unit.verify.small_models import Guesses, Samples, Shape, SmallModel, rows_of

ROUNDING = 1e-9


class SameEverywhere(SmallModel):
    """Whatever the text, the same distribution."""

    def __init__(self, probabilities: list[float]) -> None:
        self.vocabulary = len(probabilities)
        self.after = lambda text: np.array(probabilities)


def mean_accepted(rule: Rule, target: SmallModel, drafter: Samples) -> float:
    """Drafted tokens that one step accepts, in the mean over drafts and decisions."""

    def accepted(chance: Chance) -> int:
        proposal = drafter.draft((), chance)
        return len(rule.verify(proposal, rows_of(target, (), proposal), chance).path)

    return sum(tokens * probability for tokens, probability in distribution(accepted).items())


@given(st.integers(0, 10**6), st.integers(2, 3), st.sampled_from([(1,), (1, 1), (1, 1, 1)]))
def test_it_accepts_at_least_as_much_as_token_by_token(seed: int, vocabulary: int, shape: Shape) -> None:
    target, drafter = SmallModel(seed, vocabulary), Samples(SmallModel(seed + 1, vocabulary), shape)
    assert mean_accepted(Block(), target, drafter) >= mean_accepted(Rejection(), target, drafter) - ROUNDING


@given(st.integers(0, 10**6))
def test_of_one_token_it_accepts_exactly_as_much(seed: int) -> None:
    target, drafter = SmallModel(seed, 3), Samples(SmallModel(seed + 1, 3), (1,))
    assert mean_accepted(Block(), target, drafter) == pytest.approx(mean_accepted(Rejection(), target, drafter))


def test_it_accepts_what_the_paper_says_of_its_example() -> None:
    target, drafter = SameEverywhere([1 / 3, 2 / 3]), Samples(SameEverywhere([2 / 3, 1 / 3]), (1, 1))
    assert mean_accepted(Rejection(), target, drafter) == pytest.approx(10 / 9)
    assert mean_accepted(Block(), target, drafter) == pytest.approx(11 / 9)


def test_a_token_that_the_target_never_emits_ends_what_can_be_accepted() -> None:
    target, drafter = SameEverywhere([0.0, 1.0]), Samples(SameEverywhere([0.5, 0.5]), (1, 1))
    assert mean_accepted(Block(), target, drafter) == pytest.approx(0.5 * 0.5 * 1 + 0.25 * 2)


@pytest.mark.parametrize(
    ("proposal", "complaint"),
    [
        (Proposal(np.array([1, 2], np.int32), np.array([-1, -1], np.int16), np.full((3, 3), 1 / 3)), "for chains"),
        (Guesses(SmallModel(1, 3), (1, 1)).draft((), None), "needs the probabilities"),
    ],
)
def test_it_refuses_what_it_cannot_judge(proposal: Proposal, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Block().verify(proposal, np.full((3, 3), 1 / 3), None)
