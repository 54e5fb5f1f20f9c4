"""How drafts fare with depth: what was drafted and accepted one, two, three tokens ahead."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

ROOT = -1


class Positions:
    """Counts by depth; place 0 of each list is the first drafted token."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.drafted_steps: list[int] = []  # steps whose draft went at least so deep
        self.accepted_steps: list[int] = []  # steps that accepted at least so many tokens

    def add(self, parents: Sequence[int], accepted: int) -> None:
        """One draft; `parents[i]` is smaller than i, or -1. `accepted`: tokens of it."""
        depths: list[int] = []
        for parent in parents:
            depths.append(0 if parent == ROOT else depths[parent] + 1)
        deepest = max(depths, default=-1) + 1
        for counts in (self.nodes, self.drafted_steps, self.accepted_steps):
            counts.extend([0] * (deepest - len(counts)))
        for depth in depths:
            self.nodes[depth] += 1
        for depth in range(deepest):
            self.drafted_steps[depth] += 1
        for depth in range(accepted):
            self.accepted_steps[depth] += 1

    @classmethod
    def pooled(cls, parts: Iterable["Positions"]) -> "Positions":
        """All their drafts as one."""
        whole, columns = cls(), [(part.nodes, part.drafted_steps, part.accepted_steps) for part in parts]
        whole.nodes, whole.drafted_steps, whole.accepted_steps = (
            [sum(counts) for counts in zip_longest(*column, fillvalue=0)] for column in zip(*columns, strict=True)
        )
        return whole

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"nodes": self.nodes, "drafted_steps": self.drafted_steps, "accepted_steps": self.accepted_steps}
