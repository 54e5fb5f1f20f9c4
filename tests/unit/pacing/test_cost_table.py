"""Cost tables: what is none, and what one says."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest

from draftd import wire
from draftd.pacing.cost_table import MOST_SIZES, CostTable

NOT_FINITE = [float("nan"), float("inf")]


@pytest.mark.parametrize(
    ("tokens", "micros", "message"),
    [
        ((), (), "0 entries; give 1 to 4096"),
        (range(1, MOST_SIZES + 2), [1.0] * (MOST_SIZES + 1), "4097 entries; give 1 to 4096"),
        ((1, 2), (1.0,), "2 tokens and 1 micros"),
        ((0, 2), (1.0, 2.0), "entry 0: tokens is 0"),
        ((1, 2**32), (1.0, 2.0), "entry 1: tokens is 4294967296"),
        ((1, 2.5), (1.0, 2.0), "entry 1: tokens is 2.5"),
        ((1, 4, 4), (1.0, 2.0, 3.0), "entry 2: tokens is 4 after 4; tokens ascend"),
        ((1, 4, 2), (1.0, 2.0, 3.0), "entry 2: tokens is 2 after 4; tokens ascend"),
        ((1, 2), (2.0, 1.0), "entry 1: micros is 1.0 after 2.0; a longer step never costs less"),
        ((1, 2), (0.0, 1.0), "entry 0: micros is 0.0"),
        ((1, 2), (1e-50, 1.0), "entry 0: micros is 0.0"),  # in 32 bits
        ((1, 2), (1.0, 1.001e12), "entry 1: micros is 100"),
        ((1, 2), (-1.0, 1.0), "entry 0: micros is -1.0"),
        ((1, 2), (1.0, "2"), "entry 1: micros is '2'"),
        *(((1, 2), (1.0, number), f"entry 1: micros is {number}") for number in NOT_FINITE),
    ],
)
def test_an_error_names_the_entry(tokens: Sequence[int], micros: Sequence[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CostTable(tuple(tokens), tuple(micros))


@pytest.mark.parametrize("drafting", [-1.0, *NOT_FINITE])
def test_drafting_costs_nothing_or_something(drafting: float) -> None:
    with pytest.raises(ValueError, match="drafting_micros is"):
        CostTable((1,), (1.0,), drafting)


def test_times_are_as_the_wire_has_them() -> None:
    table = CostTable((1, 2), (0.1, 0.3), 0.7)
    assert [*table.micros, table.drafting_micros] == [np.float32(0.1), np.float32(0.3), np.float32(0.7)]


def test_a_table_takes_no_more_than_its_columns() -> None:
    sizes = range(1, MOST_SIZES + 1)
    message = CostTable(sizes, [float(size) for size in sizes]).message()
    tracemalloc.start()  # it sees what other threads allocate, too: a little
    try:
        table = CostTable.of_message(message)
        # A number that is an object takes 32 bytes, and 8 to point to it.
        assert tracemalloc.get_traced_memory()[0] < 2 * (4 + 4) * MOST_SIZES
    finally:
        tracemalloc.stop()
    assert table.tokens[-1] == MOST_SIZES


def test_numbers_of_numpy_are_numbers() -> None:
    table = CostTable(tuple(np.array([1, 2], np.uint32)), tuple(np.array([1, 2], np.float32)))
    assert table == CostTable((1, 2), (1.0, 2.0))


def test_a_table_is_the_same_after_the_wire() -> None:
    table = CostTable((1, 96, 128), (4480.0, 4480.5, 5000.25), 120.5)
    assert CostTable.of_message(wire.CostTable.FromString(table.message().SerializeToString())) == table


def test_a_torn_column_is_no_table() -> None:
    with pytest.raises(ValueError, match="micros: 3 bytes are no column"):
        CostTable.of_message(wire.CostTable(tokens=b"\1\0\0\0", micros=b"\0\0\0"))
