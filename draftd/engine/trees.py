"""The trees of an answer, row by row."""

import numpy as np

from draftd import native


class Trees:
    def __init__(self, tails: native.Tails) -> None:
        self._ends = np.frombuffer(tails.node_end, "<u4").tolist()
        self._survival = np.frombuffer(tails.survival, "<f4")
        self._tails = tails
        self._bases = np.frombuffer(tails.base, "<u4")

    def base(self, row: int) -> int:
        return int(self._bases[row])

    def expected(self, row: int) -> float:
        """Tokens that will be accepted, by the nodes' survival."""
        return float(self._survival[slice(*self._span(row))].sum())

    def nodes(self, row: int) -> list[tuple[int, int]]:
        """Of each node its parent and its token."""
        first, end = self._span(row)
        parents = np.frombuffer(self._tails.parents, "<i2")[first:end].tolist()
        return list(zip(parents, np.frombuffer(self._tails.tokens, "<i4")[first:end].tolist(), strict=True))

    def _span(self, row: int) -> tuple[int, int]:
        return self._ends[row - 1] if row else 0, self._ends[row]
