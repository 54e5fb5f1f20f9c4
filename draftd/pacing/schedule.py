"""Drafts as long as SGLang's adaptive schedule makes them: by batch size, and by how much was accepted lately.

Each slot of the table keeps a moving average of the nodes that its batches accepted for a request, and at every
`update_interval`-th batch after the warm-up decides anew how long its drafts are. One candidate up is worth trying when
the average nears the length that is drafted now; one down is enough when the average is below what the shorter one
could give. Drafts of length 0 say nothing about acceptance: a slot that is off tries its shortest draft at its next
decision.

One thing is added: a slot whose attempts fail again and again would spend half of its batches on drafts that don't pay.
See `_Slot._rest_after_probe`.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from draftd.pacing.schedule_table import ScheduleTable, Slot

LONGEST_REST = 64
"""Most decisions from one attempt of a slot that is off to the next."""


class Schedule:
    """The schedule of one verifier.

    `initial_steps`: nodes of a draft at first, in slots that have it among their candidates; others begin at the middle
    one. `graph_sizes`: batch sizes to which the verifier pads; none: it doesn't pad.
    """

    def __init__(self, table: ScheduleTable, initial_steps: int, graph_sizes: Sequence[int] = ()) -> None:
        self._graph_sizes = sorted(graph_sizes)
        self._sizes = sorted(table)
        self._slots = {size: _Slot(table[size], initial_steps) for size in self._sizes}

    def nodes(self, batch: int) -> int:
        """Nodes in the draft of each request of a batch; 0: drafting is off."""
        return self._slots[self.slot_of(batch)].steps

    def observe(self, batch: int, accepted: Sequence[int]) -> None:
        """A batch has been verified: how many nodes its requests accepted, 0 where a draft was wanted and had none.

        Batches without drafts count, too: a slot that is off goes by them. None of requests that wanted no draft, and
        of batches of such requests alone.
        """
        self._slots[self.slot_of(batch)].observe(accepted)

    def slot_of(self, batch: int) -> int:
        """The slot of a batch: the last that begins at or below the padded size, or the first of all."""
        graph = bisect_left(self._graph_sizes, batch)
        padded = self._graph_sizes[graph] if graph < len(self._graph_sizes) else batch
        return self._sizes[max(0, bisect_right(self._sizes, padded) - 1)]

    def slots(self) -> dict[int, int]:
        """Nodes of a draft now, by slot."""
        return {size: slot.steps for size, slot in self._slots.items()}


class _Slot:
    """Where one slot stands."""

    def __init__(self, options: Slot, initial_steps: int) -> None:
        self._options = options
        self._candidates = options.candidate_steps
        known = initial_steps in self._candidates
        self._at = self._candidates.index(initial_steps) if known else len(self._candidates) // 2
        self._average = self.steps - 1.0  # accepted nodes of a request; here neither up nor down
        self._batches = 0
        self._probing = False
        self._rest = 0  # decisions to let pass while off
        self._longer_rest = 1  # of the next attempt that fails: decisions from one attempt to the next

    @property
    def steps(self) -> int:
        return self._candidates[self._at]

    def observe(self, accepted: Sequence[int]) -> None:
        if not accepted:
            return
        if self.steps > 0:
            weight = self._options.ema_alpha
            self._average = (1 - weight) * self._average + weight * (sum(accepted) / len(accepted))
        self._batches += 1
        since_warmup = self._batches - self._options.warmup_batches
        if since_warmup > 0 and since_warmup % self._options.update_interval == 0:
            self._decide()

    def _decide(self) -> None:
        if self.steps > 0:
            self._move()
            self._rest_after_probe()
        elif self._rest > 0:
            self._rest -= 1
        else:
            self._probe()

    def _probe(self) -> None:
        """From off to the shortest draft, if there is one."""
        if self._at + 1 == len(self._candidates):
            return
        self._at += 1
        self._probing = True
        if self._average < 0:  # it began off: nothing is known yet
            self._average = self.steps - 1.0

    def _move(self) -> None:
        before = self._at
        while self._at > 0 and self._average <= self._falls_to(self._candidates[self._at - 1]):
            self._at -= 1
        if self._at == before:
            while self._at + 1 < len(self._candidates) and self._average > self._rises_from(self.steps):
                self._at += 1
        if self._options.ceiling_coeff > 0 and self._at <= before:
            ceiling = max(1, math.ceil(self._average * self._options.ceiling_coeff))
            while self._at > 0 and self.steps > ceiling:
                self._at -= 1

    def _falls_to(self, shorter: int) -> float:
        """The average at which the shorter draft is enough. Less than half a node is as good as none."""
        return (0.5 if shorter == 0 else shorter - 0.5) + self._options.down_hysteresis

    def _rises_from(self, steps: int) -> float:
        return steps - 0.5 + self._options.up_hysteresis

    def _rest_after_probe(self) -> None:
        """An attempt that is off again at its first decision has failed. After the first one the slot tries again at
        the next decision, as SGLang's does; after the second in a row it lets one decision pass, then three, and so on:
        twice as many batches each time, up to `LONGEST_REST` decisions. An attempt that stays on ends this."""
        if not self._probing:
            return
        self._probing = False
        if self.steps > 0:
            self._longer_rest = 1
        else:
            self._rest = self._longer_rest - 1
            self._longer_rest = min(2 * self._longer_rest, LONGEST_REST)
