"""SGLang's thresholds: what they accept, worked out by hand, and against the kernel's own way to decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.verify.rules import Chance, OneHot, Proposal, Thresholds, Verdict
from tests.unit.verify.exhaustive import distribution
from tests.unit.verify.small_models import Guesses, SmallModel, rows_of

TARGET = np.array([[0.5, 0.3, 0.15, 0.05]] * 4)
SIBLINGS = Proposal(np.array([1, 2, 3], np.int32), np.array([-1, -1, -1], np.int16))


def first_accepted(rule: Thresholds) -> dict[int, float]:
    """How often each token of SIBLINGS is the accepted one; -1: none."""

    def token(chance: Chance) -> int:
        path = rule.verify(SIBLINGS, TARGET, chance).path
        return int(SIBLINGS.tokens[path[0]]) if path else -1

    return distribution(token)


def as_the_kernel_decides(rule: Thresholds, coins: int) -> dict[int, float]:
    """The same by one coin for all siblings, which goes through so many values that are equally far apart."""
    found = dict.fromkeys([-1, 1, 2, 3], 0.0)
    for coin in (np.arange(coins) + 0.5) / coins:
        probabilities = TARGET[0, SIBLINGS.tokens]
        taken = (coin < probabilities.cumsum() / rule.accumulated) | (probabilities >= rule.single)
        found[int(SIBLINGS.tokens[taken.argmax()]) if taken.any() else -1] += 1 / coins
    return found


@pytest.mark.parametrize(
    "rule", [Thresholds(), Thresholds(accumulated=0.6), Thresholds(accumulated=0.4), Thresholds(0.15, 0.8)]
)
def test_a_decision_for_each_sibling_comes_to_the_kernels_one_coin_for_all(rule: Thresholds) -> None:
    by_decisions, by_coin = first_accepted(rule), as_the_kernel_decides(rule, coins=100_000)
    assert {token: by_decisions.get(token, 0.0) for token in by_coin} == pytest.approx(by_coin, abs=1e-4)


def test_more_than_the_single_threshold_is_always_accepted() -> None:
    assert first_accepted(Thresholds(single=0.3)) == {1: 1.0}
    assert first_accepted(Thresholds(single=0.31))[1] == pytest.approx(0.3)


def test_less_than_one_accumulated_raises_the_chance() -> None:
    assert first_accepted(Thresholds(accumulated=0.6)) == pytest.approx({1: 0.5, 2: 0.25, 3: 0.05 / 0.6, -1: 1 / 6})


def test_a_token_that_the_target_never_emits_is_not_accepted() -> None:
    never = Proposal(np.array([3], np.int32), np.array([-1], np.int16))
    verdicts = distribution(
        lambda chance: tuple(Thresholds(0.0, 0.0).verify(never, np.array([[0.4, 0.6, 0.0, 0.0]] * 2), chance).path)
    )
    assert verdicts == {(): 1.0}


@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (3,), (2, 2)]))
def test_both_at_one_are_the_lossless_rule(seed: int, shape: tuple[int, ...]) -> None:
    target, proposal = SmallModel(seed, 4), Guesses(SmallModel(seed + 1, 4), shape).draft((), None)
    rows = rows_of(target, (), proposal)

    def verdicts(rule: OneHot | Thresholds) -> dict[tuple[int, ...], float]:
        def flat(verdict: Verdict) -> tuple[int, ...]:
            return (*verdict.path, verdict.bonus)

        return distribution(lambda chance: flat(rule.verify(proposal, rows, chance)))

    assert verdicts(Thresholds(1.0, 1.0)) == pytest.approx(verdicts(OneHot()))


@pytest.mark.parametrize("given_", [{"single": -0.1}, {"accumulated": 1.5}, {"single": float("nan")}])
def test_a_threshold_that_is_no_probability_is_refused(given_: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"the threshold {next(iter(given_))} is .*; give a number from 0 to 1"):
        Thresholds(**given_)
