"""How many nodes a step should have, slow and readable: the twin of cpp/src/draft/best_count.

A step emits one token for each row, and each node with the probability of its survival. The best number of nodes lets
it emit most tokens for each microsecond. Here all numbers are tried; the C++ stops taking nodes as soon as none of
those that lie ahead can be better.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

LEAST_SURVIVAL = 0.002
"""Where steps have a cost, nodes below are not drafted."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a step costs: with up to tokens[i] tokens, micros[i]; draftd/native/_core.pyi says more."""

    tokens: Sequence[int]
    micros: Sequence[float]
    drafting_micros: float = 0.0
    other_tokens: int = 0
    widths: Sequence[int] = ()

    def of(self, tokens: int) -> float | None:
        """Microseconds of a step of that many tokens; None beyond the table."""
        entry = bisect_left(self.tokens, tokens)
        return self.micros[entry] if entry < len(self.tokens) else None

    def with_nodes(self, rows: int, nodes: int) -> float | None:
        """Microseconds of a step in which `rows` have together that many nodes."""
        micros = self.of(rows + self.other_tokens + nodes)
        return None if micros is None else micros + self.drafting_micros

    def with_width(self, rows: int, nodes: int) -> float | None:
        """The same where each row has up to that many nodes, padded to the next width."""
        width = bisect_left(self.widths, nodes)
        return self.with_nodes(rows, rows * self.widths[width]) if width < len(self.widths) else None


def best_count(rows: int, plain: float | None, survivals: Sequence[float], micros: Sequence[float | None]) -> int:
    """How many of what has these survivals to take, in their order; the smaller of equally good numbers.

    `plain`: microseconds of the step without any of them; `micros[i]`: with i + 1 of them. None: can't be.
    """
    if plain is None:
        return 0
    emitted = list(accumulate(survivals, initial=float(rows)))
    best, best_rate = 0, emitted[0] / plain
    for count, cost in enumerate(micros, start=1):
        if cost is not None and emitted[count] / cost > best_rate:
            best, best_rate = count, emitted[count] / cost
    return best
