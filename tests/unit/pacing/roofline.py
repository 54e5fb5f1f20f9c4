"""A simulated engine: an H100's roofline, requests of differing ease, and a core that drafts what pays."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from draftd.pacing.cost_profile import CostProfile
from draftd.pacing.cost_table import CostTable

GRAPHS = (1, 2, 4, 8, 16, 32, 64, *range(96, 4097, 32))
FLOOR = 0.002  # nodes less likely to be accepted are not drafted, whatever a step costs
MOST_NODES = 64  # of one request

Cost = Callable[[int], float]  # microseconds of a step, by its tokens


def padded(tokens: int) -> int:
    return next(size for size in GRAPHS if size >= tokens)


def h100(tokens: int) -> float:
    return 4480.0 * max(1.0, padded(tokens) / 295)


@cache
def true_table(cost: Cost) -> CostTable:
    return CostTable(GRAPHS, tuple(map(cost, GRAPHS)))


@dataclass
class Engine:
    """An engine whose times have noise of 3 % and, one in a hundred, a pause."""

    random: np.random.Generator
    tokens: float = 0.0
    micros: float = 0.0

    def step(self, rows: int, table: CostTable, cost: Cost) -> tuple[int, float]:
        """Width and measured time of a step that drafted by `table`."""
        survival = np.sort(self._survivals(rows))[::-1]
        nodes = best_nodes(rows, survival, table)
        micros = cost(rows + nodes)
        self.tokens += rows + survival[:nodes].sum()
        self.micros += micros
        noise, pauses, pause = self.random.normal(1.0, 0.03), self.random.random() < 0.01, self.random.uniform(1.5, 10)
        return rows + nodes, micros * noise * (pause if pauses else 1.0)

    def _survivals(self, rows: int) -> NDArray[np.float64]:
        """A chain for each request: easy ones go on, hard ones end at once."""
        ease = self.random.beta(1.0, 1.2, size=(rows, 1))
        survivals = ease ** np.arange(1, MOST_NODES + 1)
        found: NDArray[np.float64] = survivals[survivals > FLOOR]
        return found


def micros_of(table: CostTable, tokens: int) -> float:
    """Of a step of so many tokens; beyond the last entry in proportion."""
    entry = bisect_left(table.tokens, tokens)
    return table.micros[entry] if entry < len(table.tokens) else table.micros[-1] * tokens / table.tokens[-1]


def best_nodes(rows: int, survival: NDArray[np.float64], table: CostTable) -> int:
    """As the core decides: the number of nodes with the most tokens a microsecond."""
    emitted = rows + np.concatenate([[0.0], np.cumsum(survival)])
    best, nodes = rows / micros_of(table, rows), 0
    for tokens, micros in zip(table.tokens, table.micros, strict=True):
        filled = min(tokens - rows, len(survival))
        if filled > 0 and emitted[filled] / micros > best:
            best, nodes = emitted[filled] / micros, filled
    return nodes


def share_of_true(steps: Iterable[tuple[int, Cost]], seed: int = 1, skip: int = 0) -> float:
    """Throughput with a profile that starts cold, against the same steps with the true table.

    A step is its number of requests and what it costs; the first `skip` are not counted.
    """
    profile = CostProfile()
    learning, knowing = (Engine(np.random.default_rng(seed)) for _ in range(2))
    for number, (rows, cost) in enumerate(steps):
        if number == skip:
            learning.tokens = learning.micros = knowing.tokens = knowing.micros = 0.0
        profile.observe(*learning.step(rows, profile.table(rows), cost))
        knowing.step(rows, true_table(cost), cost)
    return (learning.tokens / learning.micros) / (knowing.tokens / knowing.micros)
