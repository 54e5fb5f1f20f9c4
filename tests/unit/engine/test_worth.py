"""A source is asked where that brought more than leaving it out, and both are tried now and then."""

import random
from collections.abc import Callable

import pytest

from draftd.engine.worth import FIRST, LATER, SETTLED, Worth

Outcome = Callable[[random.Random, bool], int]  # accepted tokens, by whether it was asked


def asked_share(worth: Worth, expected: float, outcome: Outcome, steps: int = 4_000) -> float:
    """Of the steps behind the first thousand."""
    chance, asks = random.Random(1), []
    for _ in range(steps):
        asked = worth.asks(expected)
        asks.append(asked)
        worth.learn(expected, outcome(chance, asked), asked=asked)
    return sum(asks[1000:]) / len(asks[1000:])


def noisy(with_source: float, alone: float) -> Outcome:
    """Of these means."""
    return lambda chance, asked: int(chance.random() < (with_source if asked else alone) / 4) * 4


@pytest.mark.parametrize("expected", [0.0, 0.7, 3.0, 20.0])
def test_what_pays_is_done_but_for_a_trial_now_and_then(expected: float) -> None:
    trials = 1 / LATER
    assert asked_share(Worth(0.25), expected, noisy(2.0, 0.5)) == pytest.approx(1 - trials, abs=0.01)
    assert asked_share(Worth(0.25), expected, noisy(0.5, 0.5)) < 0.3
    assert asked_share(Worth(0.25), expected, noisy(0.2, 1.0)) == pytest.approx(trials, abs=0.01)


def test_what_is_expected_of_the_indexes_is_judged_apart() -> None:
    worth = Worth(0.25)
    assert asked_share(worth, 0.2, noisy(2.0, 0.2)) > 0.9
    assert asked_share(worth, 3.0, noisy(1.0, 3.0)) < 0.1
    assert asked_share(worth, 0.2, noisy(2.0, 0.2)) > 0.9


def test_at_first_it_is_worth_asking_whatever_comes() -> None:
    worth = Worth(100.0)
    asked = 0
    while asked < FIRST:
        if worth.asks(0.0):
            asked += 1
            worth.learn(0.0, 0, asked=True)
    assert sum(worth.asks(0.0) for _ in range(SETTLED)) < SETTLED / 4


def test_a_source_that_becomes_good_is_found_out() -> None:
    worth = Worth(0.25)
    assert asked_share(worth, 0.2, noisy(0.1, 0.2)) < 0.1
    assert asked_share(worth, 0.2, noisy(3.0, 0.2), steps=20_000) > 0.8
