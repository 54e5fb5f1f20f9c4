"""The figures of a calibration are those of their definitions, whatever the steps the nodes came in."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.replay.calibration import BUCKETS, Calibration
from draftd.replay.positions import Positions

Drafts = list[list[tuple[float, bool]]]
SURVIVALS = [0.0, 0.01, 0.049, 0.05, 0.3, 0.5, 0.77, 0.949, 0.95, 1.0]  # far enough apart to rank as different
drafts = st.lists(st.lists(st.tuples(st.sampled_from(SURVIVALS), st.booleans()), max_size=6), min_size=1, max_size=40)


def calibration_of(steps: Drafts, times: int = 1) -> Calibration:
    calibration = Calibration()
    for step in steps * times:
        path = tuple(place for place, (_, accepted) in enumerate(step) if accepted)
        calibration.add(np.array([survival for survival, _ in step], np.float32), path)
    return calibration


@given(drafts)
def test_error_and_brier_score_are_those_of_their_definitions(steps: Drafts) -> None:
    calibration = calibration_of(steps)
    nodes = [(np.float32(survival).item(), accepted) for step in steps for survival, accepted in step]
    error = 0.0
    for bucket in range(BUCKETS):
        inside = [node for node in nodes if min(int(node[0] * BUCKETS), BUCKETS - 1) == bucket]
        if inside:
            survival, accepted = np.mean(inside, axis=0)
            error += len(inside) / len(nodes) * abs(survival - accepted)
    assert calibration.nodes == len(nodes)
    assert calibration.error == pytest.approx(error)
    if nodes:
        assert calibration.brier_score == pytest.approx(np.mean([(p - hit) ** 2 for p, hit in nodes]))


@given(drafts)
def test_auc_is_the_share_of_pairs_in_the_right_order(steps: Drafts) -> None:
    accepted = [survival for step in steps for survival, hit in step if hit]
    rejected = [survival for step in steps for survival, hit in step if not hit]
    pairs = list(itertools.product(accepted, rejected))
    auc = calibration_of(steps).auc
    if not pairs:
        assert auc is None
    else:
        assert auc == pytest.approx(sum((yes > no) + (yes == no) / 2 for yes, no in pairs) / len(pairs))


@given(drafts, st.integers(0, 100))
def test_the_threshold_is_the_highest_that_keeps_enough(steps: Drafts, percent: int) -> None:
    threshold = calibration_of(steps).threshold_keeping(percent / 100)
    accepted = [np.float32(survival) for step in steps for survival, hit in step if hit]
    wanted = percent / 100 * len(accepted)
    assert sum(survival >= threshold for survival in accepted) >= wanted
    if percent > 0 and accepted:
        above = [survival for survival in SURVIVALS if survival > threshold * 1.1]
        assert all(sum(survival >= higher for survival in accepted) < wanted for higher in above[1:])


def test_figures_of_many_nodes_are_those_of_few() -> None:
    steps = [[(0.9, True), (0.8, False)], [(0.2, False)], [(0.55, True)]]
    few, many = calibration_of(steps), calibration_of(steps, times=4000)
    assert many.nodes == 4000 * few.nodes
    assert (many.error, many.brier_score, many.auc) == pytest.approx((few.error, few.brier_score, few.auc))


def test_a_replay_that_accepts_what_it_says_has_no_error() -> None:
    steps = [[(0.5, True), (0.5, False)]] * 10
    assert calibration_of(steps).error == 0
    assert calibration_of([[(0.5, True)]] * 10).error == pytest.approx(0.5)


def test_positions_count_nodes_steps_and_acceptance_by_depth() -> None:
    positions = Positions()
    positions.add([-1, -1, 0, 2], accepted=2)
    positions.add([-1], accepted=0)
    positions.add([], accepted=0)
    assert positions.as_dict() == {"nodes": [3, 1, 1], "drafted_steps": [2, 1, 1], "accepted_steps": [1, 1, 0]}
