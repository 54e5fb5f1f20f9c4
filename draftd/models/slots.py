"""Texts, and which slots of the key-value memory hold how much of each: numbers alone, no tensors."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

NOBODY = 0
"""The slot that belongs to no text: padding goes there."""

NONE = np.empty(0, np.int64)


@dataclass(eq=False, slots=True)
class KeptText:
    """A text that grows. The keys and values of its first len(slots) tokens are kept, and those of drafted nodes below
    them until it is known which of these the text goes on with."""

    tokens: NDArray[np.int64] = field(default_factory=NONE.copy)
    slots: NDArray[np.int64] = field(default_factory=NONE.copy)
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)
    """Slot of the parent, NOBODY for the text itself, and token of the node: to the node's slot."""

    @property
    def missing(self) -> int:
        """Tokens whose keys and values are not kept."""
        return len(self.tokens) - len(self.slots)


class Slots:
    """Gives slots to texts; where there are too few, texts that were longest unused lose theirs."""

    def __init__(self, count: int) -> None:
        """Slots 1 to `count`; 0 is NOBODY."""
        self._free = list(range(count, NOBODY, -1))
        self._holders: dict[KeptText, None] = {}  # texts that have slots, the longest unused first

    @property
    def free(self) -> int:
        return len(self._free)

    def put(self, text: KeptText, start: int, tokens: NDArray[np.int64]) -> None:
        """From `start` on the text is `tokens`, and ends with them. What it keeps is cut where it differs from before,
        or grows by the drafted nodes that it goes on with. The last token is never kept: who asks for a draft wants the
        logits behind it, and they come with a pass over it."""
        before = text.tokens[start : start + len(tokens)]
        differs = np.flatnonzero(before != tokens[: len(before)])
        same = start + (int(differs[0]) if len(differs) else len(before))
        text.tokens = np.concatenate((text.tokens[:start], tokens))
        path: list[int] = []
        if same >= len(text.slots):  # the nodes still hang below the text
            path = self._path(text, text.tokens[len(text.slots) : -1].tolist())
        self._give(slot for slot in text.nodes.values() if slot not in path)
        text.nodes.clear()
        kept = min(same, max(len(text.tokens) - 1, 0))
        self._give(text.slots[kept:].tolist())
        text.slots = np.concatenate((text.slots[:kept], np.array(path, np.int64)))

    def take(self, text: KeptText, count: int, spared: Collection[KeptText]) -> NDArray[np.int64] | None:
        """int64[count]: slots for the text, which now is the one used last. None where there would be too few even if
        all texts but the spared ones lost theirs; then none does."""
        self._holders.pop(text, None)
        losing = [holder for holder in self._holders if holder not in spared]
        self._holders[text] = None
        if count > self.free + sum(len(holder.slots) + len(holder.nodes) for holder in losing):
            return None
        for holder in losing:
            if self.free >= count:
                break
            self.drop(holder)
        first = self.free - count
        taken = np.array(self._free[first:], np.int64)
        del self._free[first:]
        return taken

    def drop(self, text: KeptText) -> None:
        """Nothing of the text is kept; its tokens are."""
        self._give(text.slots.tolist())
        self._give(text.nodes.values())
        text.slots = NONE
        text.nodes.clear()
        self._holders.pop(text, None)

    def _give(self, slots: Iterable[int]) -> None:
        self._free.extend(slots)

    @staticmethod
    def _path(text: KeptText, tokens: list[int]) -> list[int]:
        """The slots of the nodes that these tokens, from the first on, go through."""
        path: list[int] = []
        parent = NOBODY
        for token in tokens:
            slot = text.nodes.get((parent, token))
            if slot is None:
                break
            path.append(slot)
            parent = slot
        return path
