"""Drafts as engines verify them: masks, depths, links from node to node, chains, and what a grammar leaves of a tree.

Where a root is part of the tree it is node 0, the last committed token, and drafted node i is node i + 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

NONE = -1  # instead of a node's number
PADDING_TOKEN = 0  # an id that every vocabulary has


class Nodes(Protocol):
    """What a tree is: a Draft, a DraftTree, or an engine's own columns. Parents come before their children."""

    @property
    def tokens(self) -> NDArray[np.int32]: ...

    @property
    def parents(self) -> NDArray[np.int16]: ...


class RatedNodes(Nodes, Protocol):
    """A tree that knows how likely its nodes are."""

    @property
    def survival(self) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class DraftTree:
    """Nodes that are no longer a whole Draft."""

    tokens: NDArray[np.int32]  # int32[n]
    parents: NDArray[np.int16]  # int16[n]: a smaller number, or -1 for the committed text
    survival: NDArray[np.float32]  # float32[n]


@dataclass(frozen=True, slots=True)
class TreeBatch:
    """The trees of a step, each with its root, side by side in rows of one width.

    Behind a row's own nodes is padding: it sees the committed text and itself, and no link leads to it, so it can't be
    accepted.
    """

    tokens: NDArray[np.int64]  # int64[rows, width]
    parents: NDArray[np.int64]  # int64[rows, width]: of roots and padding themselves
    sizes: NDArray[np.int64]  # int64[rows]: nodes that are no padding, with the root

    def depths(self) -> NDArray[np.int64]:
        """int64[rows, width]: edges up to the root; 0 for roots and padding."""
        depths: NDArray[np.int64] = self.mask().sum(axis=2) - 1
        return depths

    def positions(self, lengths: Sequence[int]) -> NDArray[np.int64]:
        """int64[rows, width]: places in the text, from 0, where `lengths` tokens are committed (prompt and output)."""
        return self.depths() + (np.asarray(lengths, np.int64)[:, np.newaxis] - 1)

    def mask(self) -> NDArray[np.bool_]:
        """bool[rows, width, width]: [row, i, j] where node i sees node j: its ancestors and itself."""
        rows, width = self.parents.shape
        mask = np.tile(np.eye(width, dtype=np.bool_), (rows, 1, 1))
        row = np.arange(rows)
        for node in range(1, width):  # a parent's line is complete when its child comes
            mask[:, node] |= mask[row, self.parents[:, node]]
        return mask

    def retrieve_index(self) -> NDArray[np.int64]:
        """int64[rows, width]: each node's place in the flattened batch."""
        return np.arange(self.tokens.size).reshape(self.tokens.shape)

    def retrieve_next(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """retrieve_next_token and retrieve_next_sibling, int64[rows, width] each.

        A node's first child, and the next child of its parent; -1 for none. Names as in SGLang.
        """
        first_child, next_sibling = np.full_like(self.parents, NONE), np.full_like(self.parents, NONE)
        numbers = _numbers(self.parents)
        row, node = np.nonzero((numbers > 0) & (numbers < self.sizes[:, np.newaxis]))
        parent = self.parents[row, node]
        order = np.lexsort((node, parent, row))
        row, node, parent = row[order], node[order], parent[order]
        follows = (row[1:] == row[:-1]) & (parent[1:] == parent[:-1])  # its neighbour here is its elder sibling
        next_sibling[row[:-1][follows], node[:-1][follows]] = node[1:][follows]
        is_first = np.concatenate([[True], ~follows])[: len(node)]
        first_child[row[is_first], parent[is_first]] = node[is_first]
        return first_child, next_sibling


def tree_batch(trees: Sequence[Nodes], roots: Sequence[int], width: int | None = None) -> TreeBatch:
    """The trees below their roots, each the last committed token of its request.

    A row takes the first `width` - 1 drafted nodes: report no more as verified. Without a width: as wide as the largest
    tree and its root. Raises ValueError for a width without room for the root.
    """
    if width is None:
        width = 1 + max((len(tree.tokens) for tree in trees), default=0)
    if width < 1:
        raise ValueError(f"width of the trees is {width}; give at least 1, for the root")
    tokens = np.full((len(trees), width), PADDING_TOKEN, np.int64)
    parents = np.tile(np.arange(width), (len(trees), 1))
    sizes = np.ones(len(trees), np.int64)
    tokens[:, 0] = roots
    for row, tree in enumerate(trees):
        size = sizes[row] = min(1 + len(tree.tokens), width)
        tokens[row, 1:size] = tree.tokens[: size - 1]
        parents[row, 1:size] = tree.parents[: size - 1]
        parents[row, 1:size] += 1
    return TreeBatch(tokens, parents, sizes)


def best_path(tree: RatedNodes, longest: int | None = None) -> list[int]:
    """The nodes of the chain with most accepted tokens to be expected, from the first to the last, at most `longest`.

    A chain's expectation is the sum of its nodes' survival.
    """
    expected: list[float] = []
    lengths: list[int] = []
    parents = tree.parents.tolist()
    for parent, survival in zip(parents, tree.survival.tolist(), strict=True):
        expected.append(survival + (expected[parent] if parent >= 0 else 0.0))
        lengths.append(1 + (lengths[parent] if parent >= 0 else 0))
    within = [node for node, length in enumerate(lengths) if longest is None or length <= longest]
    node = max(within, key=expected.__getitem__, default=NONE)
    path: list[int] = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def legal_nodes(tree: Nodes, allows: Callable[[Sequence[int]], bool]) -> NDArray[np.bool_]:
    """bool[n]: the nodes that a grammar lets stand.

    `allows` is asked about a node's path, the drafted tokens from the committed text down to the node itself. A node
    that it refuses goes with all that is below it, of which `allows` is not asked; the other paths stay. The flags are
    what `verified` of a step takes, so that what was cut counts for nothing.
    """
    legal: list[bool] = []
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        path = (*(paths[parent] if parent >= 0 else ()), token)
        paths.append(path)
        legal.append((parent < 0 or legal[parent]) and bool(allows(path)))
    return np.array(legal, np.bool_)


def kept_nodes(tree: RatedNodes, keep: ArrayLike) -> DraftTree:
    """The tree of the nodes where `keep`, bool[n], is set, in their order.

    Raises ValueError for another number of flags than nodes, and for a node that stays without its parent.
    """
    kept = np.asarray(keep, np.bool_)
    if kept.shape != tree.tokens.shape:
        raise ValueError(f"{kept.size} flags for a tree of {len(tree.tokens)} nodes; give a row of one flag per node")
    parents = tree.parents[kept]
    is_orphan = (parents >= 0) & ~kept[parents]
    if is_orphan.any():
        orphan = int(np.flatnonzero(kept)[is_orphan][0])
        raise ValueError(
            f"node {orphan} is kept without its parent {tree.parents[orphan]}; leave out both, or keep both"
        )
    new_number = np.cumsum(kept) - 1
    renumbered = np.where(parents >= 0, new_number[parents], NONE).astype(np.int16)
    return DraftTree(tree.tokens[kept], renumbered, tree.survival[kept])


def _numbers(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[1, width]: the node that each column is."""
    return np.arange(parents.shape[1])[np.newaxis]
