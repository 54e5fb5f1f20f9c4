"""Drafts for many texts side by side: what the model finds likeliest, level by level of each text's tree.

Trees grow as in EAGLE-2 (Li et al., arXiv 2406.16858): on each level the likeliest nodes get children, and in the end
the likeliest of all nodes are drafted. With one child a node, that is a chain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from draftd.models.growing_tree import Draft, GrowingTree
from draftd.models.paged_cache import PagedModel, PassRow
from draftd.models.slots import KeptText, Slots
from draftd.models.vocabulary import Vocabulary

FEW = 8
"""Tokens. Rows that lack more are read in a pass of their own: all rows of a pass are as wide as the widest."""


@dataclass(frozen=True, slots=True)
class Style:
    """How drafts are made; those of one style are made side by side."""

    longest: int  # levels of a tree, tokens of a chain
    children: int  # of each node, and nodes of each level that have any; 1: chains
    temperature: float  # 0: the likeliest tokens; above, chains are drawn
    vocabulary: Vocabulary
    with_probabilities: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A draft that is wanted. From `start` on the text is `tokens`, in the drafter's ids, and ends with them."""

    text: KeptText
    start: int
    tokens: NDArray[np.int64]
    most: int  # nodes


class Drafter:
    """The model, its texts and those that it has to catch up with. Not thread-safe."""

    def __init__(self, model: PagedModel, slots: Slots, piece: int, longest_text: int, seed: int) -> None:
        """`piece`: the most tokens of a text that are read before it is drafted for; what is more behind is read by
        `catch_up`, in such pieces. Nothing is drafted beyond `longest_text` tokens."""
        self._model = model
        self._slots = slots
        self._piece = piece
        self._longest_text = longest_text
        self._draws = torch.Generator(model.device).manual_seed(seed)
        self._behind: dict[KeptText, None] = {}

    @property
    def is_behind(self) -> bool:
        return bool(self._behind)

    def draft(self, style: Style, asks: Sequence[Ask]) -> list[Draft]:
        """A draft for each text, of which each is asked for once. It is empty where the text is too far behind or too
        long, or all memory is taken by the other texts of the call.

        Whatever is raised leaves these texts without keys and values."""
        trees = [GrowingTree(ask.text, ask.most, style.longest, style.children) for ask in asks]
        try:
            spared = {ask.text for ask in asks}
            for ask in asks:
                self._slots.put(ask.text, ask.start, ask.tokens)
            growing = [tree for tree in trees if self._may_read(tree, spared)]
            for group, logits in self._read(growing):
                self._grow(group, logits, style)
            while growing := [tree for tree in growing if self._may_go_on(tree, spared)]:
                rows = [tree.next_pass() for tree in growing]
                self._grow(growing, self._model.run(rows, max(len(row.tokens) for row in rows)), style)
        except BaseException:
            for ask in asks:
                self.forget(ask.text)
            raise
        return [tree.draft(style.vocabulary.target, with_probabilities=style.with_probabilities) for tree in trees]

    def catch_up(self) -> None:
        """Reads a piece of a text that is behind."""
        text = next(iter(self._behind))
        count = min(self._piece, text.missing)
        try:
            held = self._hold(text, count, {text})
            if held:
                self._model.run([_reading(text, count)], keep=1)
            if not held or not text.missing:
                del self._behind[text]
        except BaseException:
            self.forget(text)
            raise

    def forget(self, text: KeptText) -> None:
        self._behind.pop(text, None)
        self._slots.drop(text)

    def _may_read(self, tree: GrowingTree, spared: set[KeptText]) -> bool:
        """Is it to be drafted for? Then the slots of all its tokens are its own."""
        text = tree.text
        self._behind.pop(text, None)
        if not len(text.tokens) or len(text.tokens) + tree.levels > self._longest_text:
            return False
        if text.missing > self._piece:
            self._behind[text] = None
            return False
        tree.unread = text.missing
        return tree.levels > 0 and self._hold(text, text.missing, spared)

    def _may_go_on(self, tree: GrowingTree, spared: set[KeptText]) -> bool:
        """Is there another level to grow, and room for it?"""
        if tree.depth == tree.levels:
            return False
        taken = self._slots.take(tree.text, len(tree.frontier), spared)
        if taken is None:
            return False
        tree.place(taken)
        return True

    def _read(self, trees: Sequence[GrowingTree]) -> Iterator[tuple[list[GrowingTree], Tensor]]:
        """Passes over what is missing of the texts: with the logits, float32[trees, 1, vocabulary], behind each."""
        few = [tree for tree in trees if tree.unread <= FEW]
        more = [tree for tree in trees if tree.unread > FEW]
        for group in filter(None, (few, more)):
            yield group, self._model.run([_reading(tree.text, tree.unread) for tree in group], keep=1)

    def _grow(self, trees: Sequence[GrowingTree], logits: Tensor, style: Style) -> None:
        """Children for the frontier of each tree: its places are the last of float32[trees, places, vocabulary]."""
        shared = torch.from_numpy(style.vocabulary.drafter).to(logits.device)
        logs = torch.log_softmax(logits[..., shared] / (style.temperature or 1.0), dim=-1)
        ranked = logs + self._gumbel(logs) if style.temperature else logs
        columns = ranked.topk(min(style.children, len(shared))).indices
        survival = logs.gather(-1, columns).exp().cpu().numpy()
        tokens = shared[columns].cpu().numpy()
        probabilities = logs.exp().cpu().numpy() if style.with_probabilities else None
        numbers = columns.cpu().numpy()
        for row, tree in enumerate(trees):
            places = slice(-len(tree.frontier), None)
            if probabilities is not None:
                tree.remember(probabilities[row, places])
            tree.grow(numbers[row, places], tokens[row, places], survival[row, places])

    def _gumbel(self, like: Tensor) -> Tensor:
        """Noise under which the largest of log-probabilities is a draw from them."""
        return -torch.empty_like(like).exponential_(generator=self._draws).log()

    def _hold(self, text: KeptText, count: int, spared: set[KeptText]) -> bool:
        """Slots for the next `count` tokens of the text. False: there are too few, and it is as before."""
        taken = self._slots.take(text, count, spared)
        if taken is None:
            return False
        text.slots = np.concatenate((text.slots, taken))
        return True


def _reading(text: KeptText, count: int) -> PassRow:
    """The last `count` tokens that have slots: each sees what is before it."""
    end = len(text.slots)
    first = end - count
    return PassRow(
        tokens=text.tokens[first:end],
        positions=np.arange(first, end),
        slots=text.slots[first:],
        table=text.slots,
        sees=np.tri(count, end, first, dtype=np.bool_),
    )
