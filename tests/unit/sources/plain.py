"""A source to be spoilt by tests: it proposes one token for each row."""

import numpy as np
from numpy.typing import NDArray

from draftd.sources import Batch, Lane, Nature, Need, Outcome, Proposals, Shape


def nature(
    *,
    needs: frozenset[Need] = frozenset({Need.TOKENS}),
    shape: Shape = Shape.CHAIN,
    states_survival: bool = False,
    lane: Lane = Lane.NATIVE,
    call_micros: float = 0.0,
) -> Nature:
    return Nature(needs, shape, states_survival, lane, call_micros, row_micros=0.0)


class Plain:
    nature = nature()

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        nodes = np.minimum(budget, 1)
        return Proposals(np.cumsum(nodes, dtype=np.uint32), np.full(int(nodes.sum()), 7, np.int32))

    def observe(self, outcome: Outcome) -> None: ...

    def close(self) -> None: ...

    def memory(self) -> int:
        return 0
