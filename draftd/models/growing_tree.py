"""One text's draft while it grows: nodes, how likely they are, and where their keys and values lie."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftd.models.paged_cache import PassRow
from draftd.models.slots import NOBODY, KeptText

ROOT = -1


@dataclass(frozen=True, slots=True)
class Draft:
    """A tree of n nodes below a text."""

    tokens: NDArray[np.int32]  # int32[n], ids of the target
    parents: NDArray[np.int16]  # int16[n], a node before it, or -1 for the text
    survival: NDArray[np.float32]  # float32[n]: the drafter's probability of the node and all its ancestors
    # float32[n + 1, shared tokens]: what the child of each place was drawn from, row 0 being the text's, row i + 1 node
    # i's; 0 where no child was drawn. None unless the style is with probabilities
    probabilities: NDArray[np.float32] | None


class GrowingTree:
    """Grows by levels. The nodes of `frontier` are those that get children next; at first that is the text alone."""

    def __init__(self, text: KeptText, most: int, longest: int, children: int) -> None:
        """`most`: nodes in the end; `longest`: levels; `children`: of a node, and nodes of a frontier."""
        self.text = text
        self.levels = min(longest, most)
        self.depth = 0
        self.frontier = [ROOT]
        self.unread = 0
        """Tokens of the text that a pass has to go over before the first level."""
        self._most = most
        self._children = children
        self._columns: list[int] = []  # of each node, its place among the shared tokens
        self._tokens: list[int] = []  # ids of the drafter
        self._parents: list[int] = []
        self._survival: list[np.float32] = []
        self._slots: dict[int, int] = {ROOT: NOBODY}  # of nodes that are or were in the frontier
        self._probabilities: dict[int, NDArray[np.float32]] = {}  # by the parent

    def remember(self, probabilities: NDArray[np.float32]) -> None:
        """float32[frontier, shared tokens]: what the children that come now were drawn from."""
        self._probabilities.update(zip(self.frontier, probabilities, strict=True))

    def grow(self, columns: NDArray[np.int64], tokens: NDArray[np.int64], probabilities: NDArray[np.float32]) -> None:
        """A new level, from [frontier, children] columns of the shared tokens, their ids, and their probabilities below
        the parent. Its likeliest nodes are the next frontier."""
        first = len(self._tokens)
        for place, parent in enumerate(self.frontier):
            above = self._survival[parent] if parent != ROOT else np.float32(1.0)
            self._columns += columns[place].tolist()
            self._tokens += tokens[place].tolist()
            self._parents += [parent] * len(tokens[place])
            self._survival += list(np.minimum(probabilities[place], np.float32(1.0)) * above)
        level = range(first, len(self._tokens))
        self.frontier = sorted(sorted(level, key=self._likeliest_first)[: self._children])
        self.depth += 1

    def place(self, slots: NDArray[np.int64]) -> None:
        """int64[frontier]: the slots of these nodes, which are the text's now."""
        for node, slot in zip(self.frontier, slots.tolist(), strict=True):
            self._slots[node] = slot
            self.text.nodes[self._slots[self._parents[node]], self._tokens[node]] = slot

    def next_pass(self) -> PassRow:
        """Over the frontier, which has slots: each node sees the text, its ancestors and itself."""
        known = len(self.text.slots)
        placed = [node for node in self._slots if node != ROOT]
        column = {node: known + place for place, node in enumerate(placed)}
        sees = np.zeros((len(self.frontier), known + len(placed)), np.bool_)
        sees[:, :known] = True
        for place, node in enumerate(self.frontier):
            while node != ROOT:
                sees[place, column[node]] = True
                node = self._parents[node]
        return PassRow(
            tokens=np.array([self._tokens[node] for node in self.frontier], np.int64),
            positions=np.full(len(self.frontier), known + self.depth - 1, np.int64),
            slots=np.array([self._slots[node] for node in self.frontier], np.int64),
            table=np.concatenate((self.text.slots, np.array([self._slots[node] for node in placed], np.int64))),
            sees=sees,
        )

    def draft(self, target: NDArray[np.int64], *, with_probabilities: bool) -> Draft:
        """The likeliest nodes. `target`: int64[shared tokens], their ids. Of equal survival the earlier node counts
        more, so parents are never left out."""
        chosen = sorted(sorted(range(len(self._tokens)), key=self._likeliest_first)[: self._most])
        number = {node: place for place, node in enumerate(chosen)} | {ROOT: ROOT}
        return Draft(
            tokens=target[[self._columns[node] for node in chosen]].astype(np.int32),
            parents=np.array([number[self._parents[node]] for node in chosen], np.int16),
            survival=np.array([self._survival[node] for node in chosen], np.float32),
            probabilities=self._drawn_from(chosen, len(target)) if with_probabilities else None,
        )

    def _drawn_from(self, chosen: list[int], shared: int) -> NDArray[np.float32]:
        nothing = np.zeros(shared, np.float32)
        return np.stack([self._probabilities.get(node, nothing) for node in (ROOT, *chosen)])

    def _likeliest_first(self, node: int) -> tuple[float, int]:
        return -float(self._survival[node]), node
