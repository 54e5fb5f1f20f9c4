"""Tree helpers against what a reader would do by hand, node by node."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from draftd.client.local import LocalClient
from draftd.client.trees import (
    PADDING_TOKEN,
    DraftTree,
    TreeBatch,
    best_path,
    kept_nodes,
    legal_nodes,
    tree_batch,
)
from draftd.config import EngineSettings
from draftd.engine import Engine

BRANCHING = DraftTree(
    tokens=np.array([7, 8, 9, 7, 5], np.int32),
    parents=np.array([-1, 0, -1, 1, 2], np.int16),
    survival=np.array([0.5, 0.25, 0.4, 0.1, 0.39], np.float32),
)


@st.composite
def draft_trees(draw: st.DrawFn) -> DraftTree:
    size = draw(st.integers(0, 12))
    parents = [draw(st.integers(-1, node - 1)) for node in range(size)]
    survival: list[float] = []
    for parent in parents:
        chance = draw(st.integers(1, 8)) / 8
        survival.append(chance * (survival[parent] if parent >= 0 else 1.0))
    tokens = draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    return DraftTree(np.array(tokens, np.int32), np.array(parents, np.int16), np.array(survival, np.float32))


def path_to(tree: DraftTree, node: int) -> list[int]:
    """By hand: the nodes from the committed text down to `node`."""
    path: list[int] = []
    while node >= 0:
        path.insert(0, node)
        node = int(tree.parents[node])
    return path


def batch_of(trees: Sequence[DraftTree], width: int | None = None) -> TreeBatch:
    return tree_batch(trees, list(range(100, 100 + len(trees))), width)


@given(st.lists(draft_trees(), min_size=1, max_size=3))
def test_masks_depths_and_positions_follow_the_paths(trees: list[DraftTree]) -> None:
    batch = batch_of(trees)
    lengths = [10 * (row + 1) for row in range(len(trees))]
    mask, depths, positions = batch.mask(), batch.depths(), batch.positions(lengths)
    for row, tree in enumerate(trees):
        assert batch.tokens[row, 0] == 100 + row
        for node in range(len(tree.tokens)):
            path = path_to(tree, node)
            assert np.flatnonzero(mask[row, node + 1]).tolist() == [0, *(above + 1 for above in path)]
            assert depths[row, node + 1] == len(path)
            assert positions[row, node + 1] == lengths[row] - 1 + len(path)
            assert batch.tokens[row, node + 1] == tree.tokens[node]


@given(st.lists(draft_trees(), min_size=1, max_size=3))
def test_links_visit_every_node_once_below_its_parent_and_no_padding(trees: list[DraftTree]) -> None:
    batch = batch_of(trees)
    first_child, next_sibling = batch.retrieve_next()
    for row, tree in enumerate(trees):
        for node in range(-1, len(tree.tokens)):
            children: list[int] = []
            child = int(first_child[row, node + 1])
            while child >= 0:
                children.append(child - 1)
                child = int(next_sibling[row, child])
            assert children == np.flatnonzero(tree.parents == node).tolist()
    is_padding = np.arange(batch.tokens.shape[1]) >= batch.sizes[:, np.newaxis]
    assert (first_child[is_padding] == -1).all()
    assert (next_sibling[is_padding] == -1).all()
    assert batch.retrieve_index().ravel().tolist() == list(range(batch.tokens.size))


@given(st.lists(draft_trees(), min_size=1, max_size=3), st.integers(1, 16))
def test_rows_of_one_width_hold_the_first_nodes_and_padding_that_sees_itself(
    trees: list[DraftTree], width: int
) -> None:
    batch = batch_of(trees, width)
    assert batch.tokens.shape == (len(trees), width)
    mask = batch.mask()
    for row, tree in enumerate(trees):
        taken = min(len(tree.tokens), width - 1)
        assert batch.sizes[row] == 1 + taken
        assert batch.tokens[row, 1 : 1 + taken].tolist() == tree.tokens[:taken].tolist()
        assert (batch.tokens[row, 1 + taken :] == PADDING_TOKEN).all()
        for padding in range(1 + taken, width):
            assert np.flatnonzero(mask[row, padding]).tolist() == [padding]
            assert np.flatnonzero(mask[row, :, padding]).tolist() == [padding]


def test_links_are_those_that_sglang_reads_out_of_the_mask() -> None:
    batch = tree_batch([BRANCHING], [1], width=8)
    first_child, next_sibling = batch.retrieve_next()
    assert first_child.tolist() == [[1, 2, 4, 5, -1, -1, -1, -1]]
    assert next_sibling.tolist() == [[-1, 3, -1, -1, -1, -1, -1, -1]]


def test_a_step_without_requests_is_a_batch_of_none() -> None:
    batch = tree_batch([], [])
    assert batch.mask().shape == (0, 1, 1)
    assert batch.retrieve_next()[0].shape == (0, 1)


def test_a_tree_without_room_for_its_root_is_an_error() -> None:
    with pytest.raises(ValueError, match="width of the trees is 0; give at least 1, for the root"):
        batch_of([BRANCHING], 0)


@given(draft_trees(), st.none() | st.integers(1, 5))
def test_no_chain_of_the_tree_promises_more_than_the_best(tree: DraftTree, longest: int | None) -> None:
    def expected(path: list[int]) -> float:
        return float(tree.survival[path].astype(np.float64).sum())

    best = best_path(tree, longest)
    paths = [path_to(tree, node) for node in range(len(tree.tokens))]
    allowed = [path for path in paths if longest is None or len(path) <= longest]
    assert expected(best) == max(map(expected, allowed), default=0.0)
    if best:
        assert best in allowed


def test_a_sure_pair_is_a_better_chain_than_a_likelier_start() -> None:
    assert best_path(BRANCHING) == [0, 1, 3]
    assert best_path(BRANCHING, longest=2) == [2, 4]
    assert best_path(BRANCHING, longest=1) == [0]


@given(draft_trees(), st.sets(st.integers(1, 5)))
def test_a_grammar_takes_refused_nodes_with_all_below_and_no_other(tree: DraftTree, refused: set[int]) -> None:
    asked: list[tuple[int, ...]] = []

    def allows(path: Sequence[int]) -> bool:
        asked.append(tuple(path))
        return path[-1] not in refused

    legal = legal_nodes(tree, allows)
    for node in range(len(tree.tokens)):
        tokens = tree.tokens[path_to(tree, node)].tolist()
        assert legal[node] == refused.isdisjoint(tokens)
    assert all(refused.isdisjoint(path[:-1]) for path in asked), "below what was refused nothing is asked"
    kept = kept_nodes(tree, legal)
    assert len(kept.tokens) == legal.sum()
    for new, old in enumerate(np.flatnonzero(legal)):
        assert kept.tokens[path_to(kept, new)].tolist() == tree.tokens[path_to(tree, old)].tolist()
        assert kept.survival[new] == tree.survival[old]


def test_a_child_is_not_kept_without_its_parent() -> None:
    with pytest.raises(ValueError, match="node 1 is kept without its parent 0"):
        kept_nodes(BRANCHING, np.array([False, True, True, False, True]))


def test_flags_may_be_a_list() -> None:
    assert kept_nodes(BRANCHING, [True] * 5).tokens.tolist() == BRANCHING.tokens.tolist()
    assert kept_nodes(BRANCHING, [True, False, True, False, False]).tokens.tolist() == [7, 9]


@pytest.mark.parametrize("flags", [[True] * 3, [], [[True] * 5], np.ones(6, np.bool_)])
def test_flags_are_as_many_as_nodes(flags: ArrayLike) -> None:
    with pytest.raises(ValueError, match=f"^{np.size(flags)} flags for a tree of 5 nodes; give a row of one flag per"):
        kept_nodes(BRANCHING, flags)


def test_what_a_grammar_cut_of_a_real_draft_counts_for_nothing_and_the_free_request_is_untouched() -> None:
    engine = Engine(EngineSettings())
    with LocalClient(engine) as client:
        text = [1, 2, 3, 4, 5, 6, 1, 2]
        constrained, free = client.open("constrained", text), client.open("free", text, wait=True)
        drafts = client.step({constrained: [], free: []}, max_nodes=3)
        assert drafts[constrained].tokens.tolist() == drafts[free].tokens.tolist() == [3, 4, 5]
        legal = legal_nodes(drafts[constrained], lambda path: path[-1] != 4)
        assert legal.tolist() == [True, False, False]
        assert kept_nodes(drafts[constrained], legal).tokens.tolist() == [3]
        before = engine.statistics()
        client.step({constrained: [3, 9]}, max_nodes=3, verified={constrained: legal})
        after = engine.statistics()
        assert after.accepted_tokens - before.accepted_tokens == 1
        assert after.draft_tokens - before.draft_tokens == 1
