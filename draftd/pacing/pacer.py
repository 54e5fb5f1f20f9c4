"""Who decides how many nodes a verifier's next step gets, where that is not the verifier itself.

Events in, numbers out. Not to be used from two threads at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from draftd.pacing.cost_profile import CostProfile
from draftd.pacing.cost_table import CostTable
from draftd.pacing.schedule import Schedule
from draftd.wire import Pacing


@dataclass(frozen=True, slots=True)
class Pace:
    """What holds for one step; beside the limits that verifier and requests state themselves."""

    cost: CostTable | None = None
    """Nodes are drafted as long as they bring more tokens for the time by this table."""
    most_nodes: int | None = None
    """Of each request."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What a pacer goes by, for metrics."""

    pacing: Pacing
    learned: dict[int, float]
    """Microseconds of a step by its tokens, as far as they were measured."""
    explorations: int
    """Measured steps of a size of which little was known."""
    slots: dict[int, int]
    """Of a schedule: nodes of a draft now, by the batch size the slot begins at."""


class Pacer:
    """The pacer of one verifier: by the cost of steps, stated or learned, or by a schedule."""

    def __init__(self, *, stated: CostTable | None = None, schedule: Schedule | None = None) -> None:
        self._stated = stated
        self._schedule = schedule
        self._profile = CostProfile()

    def state(self, cost: CostTable) -> None:
        """The verifier says what steps cost from now on."""
        self._stated = cost

    def measured(self, width: int, micros: float) -> None:
        """The last step had `width` tokens, padding not counted, and took so long."""
        if self._stated is None and self._schedule is None:
            self._profile.observe(width, micros)

    def pace(self, rows: int, other_tokens: int) -> Pace:
        """Of a step of so many requests that are drafted for, with so many tokens beside theirs."""
        if self._schedule is not None:
            return Pace(most_nodes=self._schedule.nodes(rows))
        return Pace(cost=self._stated or self._profile.table(rows + other_tokens))

    def verified(self, rows: int, accepted: Sequence[int]) -> None:
        """How many nodes the requests of a step of so many accepted, as far as it says something of drafts."""
        if self._schedule is not None:
            self._schedule.observe(rows, accepted)

    def belief(self) -> Belief:
        return Belief(
            pacing=Pacing.SURVIVAL if self._schedule is None else Pacing.SCHEDULE,
            learned=self._profile.known(),
            explorations=self._profile.explorations,
            slots=self._schedule.slots() if self._schedule else {},
        )
