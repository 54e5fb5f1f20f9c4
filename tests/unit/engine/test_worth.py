"""A source is asked where that brought more than leaving it out, and tried now and then where it did not."""

import random
from collections.abc import Callable

import pytest

from draftd.engine.worth import FIRST, LATER, SETTLED, Worth

Gain = Callable[[random.Random], int]  # accepted tokens that asking brings


def asked_share(worth: Worth, expected: float, gain: Gain, steps: int = 4_000) -> float:
    """Of the steps behind the first thousand."""
    chance, asks = random.Random(1), []
    for _ in range(steps):
        asks.append(worth.asks(expected))
        if asks[-1]:
            worth.learn(expected, gain(chance))
    return sum(asks[1000:]) / len(asks[1000:])


def noisy(mean: float) -> Gain:
    return lambda chance: 4 if chance.random() < (mean + 4) / 8 else -4


@pytest.mark.parametrize("expected", [0.0, 0.7, 3.0, 20.0])
def test_what_pays_is_done_and_what_does_not_is_tried_now_and_then(expected: float) -> None:
    assert asked_share(Worth(0.25), expected, noisy(2.0)) == 1.0
    for outcome in (lambda _: 0, lambda _: -1):
        assert asked_share(Worth(0.25), expected, outcome) == pytest.approx(1 / LATER, abs=0.01)


def test_at_a_least_gain_of_0_it_is_asked_wherever_it_does_no_harm() -> None:
    assert asked_share(Worth(0.0), 1.0, lambda _: 0) == 1.0
    assert asked_share(Worth(0.0), 1.0, lambda _: -1) < 0.1


def test_what_is_expected_of_the_indexes_is_judged_apart() -> None:
    worth = Worth(0.25)
    assert asked_share(worth, 0.2, noisy(2.0)) > 0.9
    assert asked_share(worth, 3.0, noisy(-2.0)) < 0.1
    assert asked_share(worth, 0.2, noisy(2.0)) > 0.9


def test_at_first_it_is_worth_asking_whatever_comes() -> None:
    worth = Worth(100.0)
    for _ in range(FIRST):
        assert worth.asks(0.0)
        worth.learn(0.0, 0)
    assert sum(worth.asks(0.0) for _ in range(SETTLED)) < SETTLED / 4


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 16, 32, 64, 96])
def test_trials_come_to_all_rows_of_a_batch(rows: int) -> None:
    worth = Worth(0.25)
    steps = [[worth.asks(0.0) and not worth.learn(0.0, 0) for _ in range(rows)] for _ in range(40 * LATER)]
    for row in range(rows):
        assert sum(step[row] for step in steps[20:]) == pytest.approx(40, abs=20)


def test_a_source_that_becomes_good_is_found_out() -> None:
    worth = Worth(0.25)
    assert asked_share(worth, 0.2, lambda _: 0) < 0.1
    assert asked_share(worth, 0.2, noisy(3.0), steps=20_000) > 0.8
