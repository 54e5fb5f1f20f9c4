"""What is learned of the cost of steps, on a simulated engine with noise and pauses, starting cold."""

from collections.abc import Iterator
from itertools import cycle, islice, pairwise, repeat

import numpy as np
import pytest

from draftd.pacing.cost_profile import FIRST_WIDTH, KNOWN, MOST_HOPE, SIZES, STEPS_OF_TRUST, CostProfile
from tests.unit.pacing.roofline import Cost, Engine, h100, micros_of, padded, share_of_true


def wandering(seed: int) -> Iterator[int]:
    random = np.random.default_rng(seed)
    rows = 1.0
    while True:
        rows = min(256.0, max(1.0, rows * random.lognormal(0.0, 0.05)))
        yield round(rows)


def slower(tokens: int) -> float:
    return 1.4 * h100(tokens)


def capped(tokens: int) -> float:
    """With half the clock, but all of the memory's bandwidth."""
    return 4480.0 * max(1.0, padded(tokens) / 150)


def affine(tokens: int) -> float:
    return 4000.0 + 40.0 * padded(tokens)


@pytest.mark.parametrize("rows", [1, 8, 32, 64, 128, 256])
def test_a_profile_that_starts_cold_is_as_good_as_the_true_table(rows: int) -> None:
    assert share_of_true(repeat((rows, h100), 1000)) >= 0.98


@pytest.mark.parametrize("seed", [1, 2])
def test_also_when_the_batch_size_wanders(seed: int) -> None:
    assert share_of_true(((rows, h100) for rows in islice(wandering(seed), 1500)), seed) >= 0.98


@pytest.mark.parametrize("rows", [8, 64, 256])
def test_also_where_every_token_costs_something(rows: int) -> None:
    assert share_of_true(repeat((rows, affine), 1000)) >= 0.98


@pytest.mark.parametrize("other", [slower, capped])
@pytest.mark.parametrize("shift", [0, 120])
def test_a_change_of_the_clock_is_followed_there_and_back(other: Cost, shift: int) -> None:
    """Within 450 steps, of which those of one batch size are a third."""
    costs = [*repeat(h100, 600), *repeat(other, 750), *repeat(h100, 750)]
    batches = islice(cycle([64] * 50 + [200] * 50 + [16] * 50), shift, shift + len(costs))
    steps = list(zip(batches, costs, strict=True))
    assert share_of_true(steps[:1350], skip=1050) >= 0.97
    assert share_of_true(steps, skip=1800) >= 0.97


def taught(*steps: tuple[int, float]) -> CostProfile:
    profile = CostProfile()
    for width, micros in steps:
        profile.observe(width, micros)
    return profile


@pytest.mark.parametrize(("plain", "widest"), [(1, FIRST_WIDTH), (8, 10), (256, 320), (2**32 - 2, 2**32 - 1)])
def test_nothing_known_is_a_few_nodes_and_never_everything(plain: int, widest: int) -> None:
    assert list(CostProfile().table(plain).tokens) == [widest]


def test_widths_grow_twofold_and_later_by_64_tokens() -> None:
    profile = taught(*[(1, 100.0)] * KNOWN)
    grown = []
    while grown[-1:] != [SIZES[-1]]:
        grown.append(profile.table(1).tokens[-1])
        for _ in range(KNOWN):
            profile.observe(grown[-1], 100.0)
    assert grown[:10] == [2, 4, 8, 16, 32, 64, 128, 192, 256, 320]
    assert all(wider - size <= 256 for size, wider in pairwise(grown))


def test_two_times_are_not_enough_to_grow() -> None:
    assert taught((1, 100.0), (1, 100.0)).table(1).tokens[-1] == FIRST_WIDTH


def test_between_two_known_sizes_the_larger_ones_cost_is_assumed() -> None:
    table = taught(*[(8, 100.0), (64, 200.0)] * KNOWN).table(8)
    assert micros_of(table, 24) == pytest.approx(200.0, rel=0.01)
    assert micros_of(table, 16) == pytest.approx(100.0, rel=0.01), "the next size is tried"


def test_below_the_smallest_known_size_cost_falls_in_proportion() -> None:
    assert micros_of(taught(*[(64, 200.0)] * KNOWN).table(8), 16) == 50.0


def test_times_that_fall_with_the_width_are_pooled() -> None:
    known = taught(*[(8, 110.0), (16, 100.0), (24, 90.0), (32, 200.0)] * KNOWN).known()
    assert known == {8: 100.0, 16: 100.0, 24: 100.0, 32: 200.0}


def test_pauses_change_nothing() -> None:
    times = [100.0, 101.0, 99.0, 5000.0, 100.0, 9000.0, 100.0]
    assert taught(*((8, time) for time in times)).known() == {8: 100.0}


def test_three_times_in_a_row_are_a_change_and_the_older_ones_are_forgotten() -> None:
    assert taught(*[(8, 100.0)] * 20, *[(8, 130.0)] * 2).known() == {8: 100.0}
    assert taught(*[(8, 100.0)] * 20, *[(8, 130.0)] * 3).known() == {8: 130.0}


def test_what_becomes_cheaper_makes_the_next_wider_size_unknown() -> None:
    before = [(8, 100.0), (64, 200.0), (96, 300.0)] * 20
    assert taught(*before, *[(8, 50.0)] * 2).known() == {8: 100.0, 64: 200.0, 96: 300.0}
    assert taught(*before, *[(8, 50.0)] * 3).known() == {8: 50.0, 96: 300.0}


def test_what_becomes_cheaper_outweighs_what_narrower_sizes_were() -> None:
    known = taught(*[(8, 100.0), (64, 100.0)] * 20, *[(64, 50.0)] * 20).known()
    assert known[8] == known[64] < 60.0


def test_what_becomes_dearer_is_believed_of_no_narrower_one() -> None:
    assert taught(*[(8, 100.0), (64, 200.0)] * 20, *[(64, 300.0)] * 3).known() == {8: 100.0, 64: 300.0}


def test_what_is_old_is_believed_less_until_it_is_measured_again() -> None:
    profile = taught(*[(8, 100.0), (64, 200.0)] * KNOWN)
    hopes = []
    for _ in range(3):
        for _ in range(STEPS_OF_TRUST // 2):
            profile.observe(8, 100.0)
        hopes.append(1 - micros_of(profile.table(8), 64) / 200.0)
    assert hopes == [pytest.approx(0.25, abs=0.01), MOST_HOPE, MOST_HOPE]
    profile.observe(64, 205.0)
    profile.observe(64, 5000.0)
    assert micros_of(profile.table(8), 64) == pytest.approx(200.0, rel=0.05)


@pytest.mark.parametrize("width", [0, -1, SIZES[-1] + 1, 2**32 - 1])
def test_a_width_that_is_no_step_or_wider_than_all_sizes_teaches_nothing(width: int) -> None:
    assert taught(*[(width, 100.0)] * KNOWN).known() == {}


def test_explorations_are_steps_of_sizes_that_were_not_known() -> None:
    assert taught(*[(8, 100.0)] * 10, (64, 100.0)).explorations == KNOWN + 1


def test_the_same_steps_give_the_same_tables() -> None:
    tables = []
    for _ in range(2):
        profile, engine = CostProfile(), Engine(np.random.default_rng(3))
        for _ in range(100):
            profile.observe(*engine.step(32, profile.table(32), h100))
        tables.append(profile.table(32))
    assert tables[0] == tables[1]
