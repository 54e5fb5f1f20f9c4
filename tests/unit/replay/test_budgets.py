"""Budgets of a replay."""

from hypothesis import given
from hypothesis import strategies as st

from draftd.replay.budgets import FixedBudget, MeanBudget


def test_a_fixed_budget_never_changes() -> None:
    budget = FixedBudget(8)
    budget.spent(8)
    assert (budget.nodes(1), budget.min_survival) == (8, 0.0)


@given(st.integers(1, 16), st.integers(1, 4), st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_a_mean_budget_is_never_overdrawn(mean: int, requests: int, appetites: list[float]) -> None:
    budget = MeanBudget(mean)
    spent = 0
    for steps, appetite in enumerate(appetites, start=1):
        limit = budget.nodes(requests)
        assert mean <= limit <= 2 * mean
        for _ in range(requests):
            budget.spent(round(limit * appetite))
            spent += round(limit * appetite)
        assert spent <= mean * requests * steps


def test_saved_nodes_lower_the_threshold_and_spending_them_raises_it_again() -> None:
    budget = MeanBudget(8)
    first = budget.min_survival
    for _ in range(10):
        budget.spent(0)
    saved = budget.min_survival
    budget.spent(16)
    assert saved < budget.min_survival < first
