"""What a model learns: the core starts as its twin does, and survival keeps the order of what it corrects.

That both learn the same is held in test_engine.py, lesson by lesson as engines come by them.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftd import native
from draftd.reference import cells
from draftd.reference.logistic import squash, stretch
from draftd.reference.model import INPUTS, Candidate, Model
from tests.property.models import assert_equal, native_model, random_model

ROUNDING = 1e-6

survivals = st.floats(1e-7, 1.0)


def candidate(token: int, cell: int) -> Candidate:
    """One that a context of one number has, and nobody else."""
    numbers = [cells.NOTHING] * INPUTS
    numbers[0], numbers[-2] = cell, cells.CONSTANT
    return Candidate(token, np.float32(-2), tuple(numbers), cells.agreement(0, 1, 1), 1)


def test_the_core_starts_as_its_twin() -> None:
    assert_equal(native.Model(), Model())


@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_model_is_saved_with_all_its_numbers(seed: int) -> None:
    model = random_model(seed)
    assert_equal(native.Model.load(native_model(model).save()), model)


def test_numbers_that_no_lessons_give_are_refused() -> None:
    model = Model()
    model.lessons = 1 << 63
    with pytest.raises(ValueError, match="9223372036854775808 lessons are more than can be given"):
        native_model(model)
    model.lessons, model.hits[7] = 1, model.trials[7] + 1
    with pytest.raises(ValueError, match=r"cell 7 has 3\.0+ hits of 2\.0+ trials"):
        native_model(model)


@given(
    fates=st.lists(st.tuples(survivals, st.booleans()), max_size=30), asked=st.lists(survivals, min_size=2, max_size=10)
)
def test_survival_keeps_the_order_of_what_it_corrects(fates: list[tuple[float, bool]], asked: list[float]) -> None:
    model = Model()
    for raw, accepted in [*fates, *fates]:
        model.learn_survival(raw, accepted)
    survival = [model.survival(raw) for raw in sorted(asked)]
    assert all(0.0 < one < 1.0 for one in survival)
    assert all(lower <= higher + ROUNDING for lower, higher in pairwise(survival))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_survival_becomes_what_is_accepted(power: float) -> None:
    """Of nodes that were thought too little, rightly, and too much of."""
    model, random = Model(), np.random.default_rng(1)
    for raw in random.random(10_000):
        model.learn_survival(raw, bool(random.random() < raw**power))
    for raw in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert model.survival(raw) == pytest.approx(raw**power, abs=0.1)


@pytest.mark.parametrize("true", [0.1, 0.9])
def test_evidence_counts_for_as_much_as_it_was_right(true: float) -> None:
    model, random = Model(), np.random.default_rng(1)
    one = candidate(7, cells.known(cells.context(cells.Origin.OUTPUT, 4, 1), 6, True, cells.Recency.NEAR, 0))
    for right in random.random(3_000) < true:
        model.learn([one], 7 if right else 8)
    assert float(model.probabilities([one])[0]) == pytest.approx(true, abs=0.08)


@given(st.floats(0.001, 0.999))
def test_a_logit_is_that_of_its_probability(probability: float) -> None:
    probability = float(np.float32(probability))  # near 1 its rounding alone moves the logit by more than 2e-5
    z = stretch(np.array(probability, np.float32))
    assert z == pytest.approx(np.log(probability / (1 - probability)), abs=2e-5)
    assert squash(z) == pytest.approx(probability, rel=2e-5)
