"""The kernels in Triton's interpreter draft what their twin does.

It runs programs one after the other. What that would hide is tried here: programs run in a random order, and buffers
hold garbage before each call.
"""

import random
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.runtime.interpreter import interpreter_builder

from draftd.kernels import ngram_torch, ngram_triton
from draftd.kernels.keys import LENGTH_SHIFT, MOST_TOKENS, OWN_SHIFT
from draftd.kernels.texts import Drafts, Rule
from tests.engines.kernels.oracle import BATCHES, CPU, GARBAGE, ROWS, Row, on_device, rules


@pytest.fixture(scope="module", autouse=True)
def any_order() -> Iterator[None]:
    """Each launch runs its programs in an order of its own."""
    chance = random.Random(0)
    set_dimensions, set_indices = interpreter_builder.set_grid_dim, interpreter_builder.set_grid_idx
    order: list[int] = []

    def shuffled(*dimensions: int) -> None:
        order[:] = chance.sample(range(dimensions[0]), dimensions[0])
        set_dimensions(*dimensions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter_builder, "set_grid_dim", shuffled)
        patch.setattr(interpreter_builder, "set_grid_idx", lambda x, y, z: set_indices(order[x], y, z))
        yield


def assert_alike(rows: list[Row], batch: list[int], rule: Rule, width: int, launch: ngram_triton.Launch) -> None:
    texts = on_device(rows, width)
    of_twin, of_kernels = (Drafts.empty(len(batch), rule, CPU) for _ in range(2))
    place = 1 if rule.prefer == "latest" else MOST_TOKENS - 1
    of_kernels.keys.fill_(1000 << LENGTH_SHIFT | 1 << OWN_SHIFT | place)  # better than any match there is
    of_kernels.tokens.fill_(GARBAGE)
    of_kernels.counts.fill_(GARBAGE)
    ngram_torch.draft(texts, torch.tensor(batch), rule, of_twin)
    ngram_triton.draft(texts, torch.tensor(batch), rule, of_kernels, launch)
    assert of_kernels.keys.tolist() == of_twin.keys.tolist()
    assert of_kernels.tokens.tolist() == of_twin.tokens.tolist()
    assert of_kernels.counts.tolist() == of_twin.counts.tolist()


@given(
    rows=st.lists(ROWS, min_size=1, max_size=4),
    rule=rules(),
    spare=st.integers(0, 60),
    programs=st.integers(1, 9),
    tile=st.sampled_from([128, 512, 4096]),
    data=st.data(),
)
@settings(max_examples=25, deadline=None)
def test_any_batch_cut_in_any_way(
    rows: list[Row], rule: Rule, spare: int, programs: int, tile: int, data: st.DataObject
) -> None:
    batch = data.draw(st.lists(st.integers(-1, len(rows) - 1), min_size=1, max_size=6))
    width = max(1, *(len(row.text) for row in rows)) + spare
    assert_alike(rows, batch, rule, width, ngram_triton.Launch(programs, tile))


@pytest.mark.parametrize("prefer", ["earliest", "latest"])
def test_every_tile_of_a_row_knows_the_best_match(prefer: str) -> None:
    """A dozen equal matches, each in a tile of another program."""
    rows = [Row([1, 2, 3, 4] * 16 + [1, 2, 3, 5, 1, 2, 3]), Row([]), Row([6]), Row([7, 7])]
    for _ in range(5):
        assert_alike(rows, [0, 1, 2, 3], Rule(1, 3, 4, prefer), 512, ngram_triton.Launch(5, 4))


@given(
    rows=BATCHES,
    emitted=st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=4, max_size=4),
    counts=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    closed=st.sets(st.integers(0, 3)),
)
@settings(max_examples=25, deadline=None)
def test_texts_grow_alike(rows: list[Row], emitted: list[list[int]], counts: list[int], closed: set[int]) -> None:
    behind = Row([])  # whose row nothing may run into
    of_twin, of_kernel = on_device([*rows, behind], 41), on_device([*rows, behind], 41)
    for module, texts in ((ngram_torch, of_twin), (ngram_triton, of_kernel)):
        for place in closed & set(range(len(rows))):
            texts.openings[place] = 0
        module.append(texts, torch.tensor(emitted[: len(rows)]), torch.tensor(counts[: len(rows)]))
    assert of_kernel.lengths.tolist() == of_twin.lengths.tolist()
    assert of_kernel.tokens.tolist() == of_twin.tokens.tolist()
    assert (of_kernel.tokens[-1] == GARBAGE).all()
