"""The trees of an answer, row by row. Each column is read once, for to read one is to copy it."""

import numpy as np

from draftd import native


class Trees:
    def __init__(self, tails: native.Tails) -> None:
        self._ends = np.frombuffer(tails.node_end, "<u4").tolist()
        self._bases = np.frombuffer(tails.base, "<u4")
        self._tokens = np.frombuffer(tails.tokens, "<i4")
        self._parents = np.frombuffer(tails.parents, "<i2")
        self._survival = np.frombuffer(tails.survival, "<f4")

    def base(self, row: int) -> int:
        return int(self._bases[row])

    def expected(self, row: int) -> float:
        """Tokens that will be accepted, by the nodes' survival."""
        return float(self._survival[self._span(row)].sum())

    def nodes(self, row: int) -> list[tuple[int, int]]:
        """Of each node its parent and its token."""
        span = self._span(row)
        return list(zip(self._parents[span].tolist(), self._tokens[span].tolist(), strict=True))

    def _span(self, row: int) -> slice:
        return slice(self._ends[row - 1] if row else 0, self._ends[row])
