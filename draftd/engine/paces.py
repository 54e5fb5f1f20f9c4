"""Who decides how many nodes a step gets: what its verifier said, and what the server is configured for.

Verifiers whose steps are drafted as asked have no pacer: none of this is done for them.
"""

import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from draftd import native
from draftd.config import PacingSettings
from draftd.engine.outcomes import Outcomes
from draftd.pacing.cost_table import MOST_SIZES, CostTable
from draftd.pacing.pacer import Belief, Pacer
from draftd.pacing.schedule import Schedule
from draftd.pacing.schedule_table import read_table, shipped_table
from draftd.wire import Hello, Pacing, Reason, StepBatch

INITIAL_STEPS = 3  # nodes at first of a schedule's drafts, as SGLang has it
MOST_NODES = 2**16 - 1  # no limit: VerifyCommit.max_nodes is a column of u16


class StepPace(NamedTuple):
    """What a step's nodes are subject to beside the limits that verifier and requests state themselves."""

    pacing: Pacing
    max_nodes: bytes | None = None
    """u16[n], in place of the commit's."""
    most_nodes: int | None = None
    """Of each request; long ones may have more, and some rest. None: the step is drafted as asked."""
    cost: native.StepCost | None = None
    why_none: Reason | None = None
    """Of rows that want nodes where `max_nodes` has none for them."""


class VerifierPacer:
    """A verifier's pacer, fed from its steps. Thread-safe."""

    def __init__(self, pacer: Pacer, pacing: Pacing) -> None:
        self._pacer = pacer
        self._pacing = pacing
        self._outcomes = Outcomes()
        self._cost: tuple[CostTable, tuple[int, bytes], native.StepCost] | None = None  # of the last step
        self._lock = threading.Lock()

    def pace(self, batch: StepBatch) -> StepPace:
        """Of this step, whose commit's columns fit together. Raises ValueError for a cost table or widths that are
        none; then nothing has changed."""
        commit = batch.commit
        if batch.widths:
            _ascending("widths", np.frombuffer(_whole("widths", batch.widths, 2), "<u2"))
        stated = _stated(batch)
        with self._lock:
            if stated is not None:
                self._pacer.state(stated)
            pace = self._pacer.pace(len(commit.request) // 4, batch.other_tokens)
            cost = None if pace.cost is None else self._step_cost(pace.cost, batch)
        if pace.most_nodes is None:
            return StepPace(self._pacing, most_nodes=MOST_NODES, cost=cost)
        if pace.most_nodes == 0:
            return StepPace(self._pacing, bytes(len(commit.max_nodes)), 0, why_none=Reason.NOT_WORTH_IT)
        return StepPace(self._pacing, most_nodes=pace.most_nodes)

    def _step_cost(self, table: CostTable, batch: StepBatch) -> native.StepCost:
        """The same one while nothing changes: it takes longer to check than to use."""
        beside = (batch.other_tokens, batch.widths)
        if self._cost is None or self._cost[0] is not table or self._cost[1] != beside:
            cost = native.StepCost(*table.columns(), table.drafting_micros, *beside)
            self._cost = (table, beside, cost)
        return self._cost[2]

    def learn(self, batch: StepBatch, tails: native.Tails, *, shed: bool) -> None:
        """What the step said of the one before."""
        with self._lock:
            if batch.step_micros and batch.step_width:
                self._pacer.measured(batch.step_width, batch.step_micros)
            if self._pacing == Pacing.SCHEDULE:
                accepted = self._outcomes.of_step(batch, tails, shed=shed)
                self._pacer.verified(len(batch.commit.request) // 4, accepted)

    def belief(self) -> Belief:
        with self._lock:
            return self._pacer.belief()


class PacerMaker:
    """Makes the pacers of a server's verifiers. Raises ValueError, which names the file, for what is no schedule."""

    def __init__(self, settings: PacingSettings) -> None:
        self._usual = Pacing[settings.mode.upper()]
        self._schedule = read_table(settings.schedule) if isinstance(settings.schedule, Path) else shipped_table()

    def make(self, hello: Hello) -> VerifierPacer | None:
        """None: the verifier's steps are drafted as it asks. Raises ValueError naming the field of the greeting."""
        pacing = hello.pacing if hello.HasField("pacing") else self._usual
        sizes = np.frombuffer(_whole("graph_sizes", hello.graph_sizes, 4), "<u4")
        _ascending("graph_sizes", sizes)
        stated = _stated(hello)
        match pacing:
            case Pacing.AS_ASKED:
                return None
            case Pacing.SURVIVAL:
                return VerifierPacer(Pacer(stated=stated), Pacing.SURVIVAL)
            case Pacing.SCHEDULE:
                schedule = Schedule(self._schedule, INITIAL_STEPS, sizes.tolist())
                return VerifierPacer(Pacer(schedule=schedule), Pacing.SCHEDULE)
            case _:
                raise ValueError(f"pacing: {pacing} is no Pacing")


def _stated(message: Hello | StepBatch) -> CostTable | None:
    if not message.HasField("cost"):
        return None
    try:
        return CostTable.of_message(message.cost)
    except ValueError as error:
        raise ValueError(f"cost: {error}") from None


def _whole(name: str, column: bytes, entry: int) -> bytes:
    if len(column) % entry:
        raise ValueError(f"{name}: {len(column)} bytes are no column of {entry}-byte entries")
    if len(column) > entry * MOST_SIZES:
        raise ValueError(f"{name}: {len(column) // entry} of them; at most {MOST_SIZES}")
    return column


def _ascending(name: str, numbers: NDArray[np.unsignedinteger[Any]]) -> None:
    if len(numbers) and (numbers[0] == 0 or (numbers[1:] <= numbers[:-1]).any()):
        raise ValueError(f"{name}: {numbers.tolist()[:20]} do not ascend from 1 on")
