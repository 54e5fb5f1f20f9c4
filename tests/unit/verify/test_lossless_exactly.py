"""Rules that say so emit the target's distribution: computed over every way that chance can go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.verify.rules import Block, Chance, OneHot, Rejection, Rule, Thresholds
from tests.unit.verify.exhaustive import distribution
from tests.unit.verify.small_models import Guesses, Samples, Shape, SmallModel, Text, step
from tests.unit.verify.wrong_rules import (
    AcceptsByTheShare,
    ForgetsWhatWasRejected,
    LeavesOutTheShare,
    SamplesWithReplacement,
    TakesSiblingsForFirst,
)

VOCABULARY = 3
LENGTH = 3  # tokens whose joint distribution is compared; steps end before it, at it and behind it
ROUNDING = 1e-9

CHAINS: list[Shape] = [(), (1,), (1, 1), (1, 1, 1)]
TREES: list[Shape] = [(2,), (3,), (2, 1), (1, 2)]


def farthest(rule: Rule, drafter: Guesses | Samples, target: SmallModel) -> float:
    """The largest error of any text's probability, if one verify step emits its beginning and the target the rest."""

    def emitted(chance: Chance) -> Text:
        text = step(rule, target, drafter, (), chance)
        while len(text) < LENGTH:
            text += (chance.draw(target.after(text)),)
        return text[:LENGTH]

    found = distribution(emitted)
    return max(abs(found.get(text, 0.0) - wanted) for text, wanted in target.joint(LENGTH).items())


SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.sampled_from(CHAINS + TREES))
def test_one_hot_is_lossless(seed: int, shape: Shape) -> None:
    target = SmallModel(seed, VOCABULARY)
    assert farthest(OneHot(), Guesses(SmallModel(seed + 1, VOCABULARY), shape), target) < ROUNDING


@given(SEEDS, st.sampled_from(CHAINS + TREES))
def test_rejection_is_lossless(seed: int, shape: Shape) -> None:
    target = SmallModel(seed, VOCABULARY)
    assert farthest(Rejection(), Samples(SmallModel(seed + 1, VOCABULARY), shape), target) < ROUNDING


@given(SEEDS, st.sampled_from(CHAINS))
def test_block_is_lossless(seed: int, shape: Shape) -> None:
    target = SmallModel(seed, VOCABULARY)
    assert farthest(Block(), Samples(SmallModel(seed + 1, VOCABULARY), shape), target) < ROUNDING


@pytest.mark.parametrize(
    ("rule", "drafter", "shape"),
    [
        (ForgetsWhatWasRejected(OneHot()), Guesses, (1, 1)),
        (ForgetsWhatWasRejected(Rejection()), Samples, (1, 1)),
        (ForgetsWhatWasRejected(Block()), Samples, (1, 1)),
        (TakesSiblingsForFirst(), Guesses, (2,)),
        (SamplesWithReplacement(), Samples, (2,)),
        (LeavesOutTheShare(), Samples, (1, 1)),
        (AcceptsByTheShare(), Samples, (1, 1)),
        (Thresholds(single=0.5), Guesses, (1, 1)),
        (Thresholds(accumulated=0.5), Guesses, (2,)),
    ],
)
def test_wrong_and_lossy_rules_are_found_out(rule: Rule, drafter: type[Guesses] | type[Samples], shape: Shape) -> None:
    models = [(SmallModel(seed, VOCABULARY), SmallModel(seed + 1, VOCABULARY)) for seed in range(5)]
    assert max(farthest(rule, drafter(model, shape), target) for target, model in models) > 1000 * 1000 * ROUNDING
