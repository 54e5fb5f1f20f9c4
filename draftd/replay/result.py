"""What a replay counted."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from draftd.replay.calibration import Calibration
from draftd.replay.positions import Positions
from draftd.replay.verification import Verification


@dataclass(slots=True)
class ReplayResult:
    """Counts over one file. A step is one verification of one request: a forward pass of the target after prefill."""

    workload: str
    requests: int = 0
    steps: int = 0
    emitted: int = 0  # tokens: accepted and bonus
    accepted: int = 0  # drafted tokens accepted
    drafted: int = 0  # distinct nodes
    covered_steps: int = 0  # steps with at least one accepted token
    drafts_digest: bytes = bytes(16)  # equal in two replays if all their drafts were, in content and order
    calibration: Calibration = field(default_factory=Calibration, repr=False)  # empty if the drafter states no survival
    positions: Positions = field(default_factory=Positions, repr=False)
    core_micros: list[float] = field(default_factory=list, repr=False)  # drafting in the drafter's core; per message
    round_trip_micros: list[float] = field(default_factory=list, repr=False)  # commit and draft; per message

    def add_step(self, step: Verification, parents: Sequence[int], survival: NDArray[np.float32] | None) -> None:
        """`parents` and `survival` (float32[n]) are those of the draft that was verified."""
        self.steps += 1
        self.emitted += step.emitted
        self.accepted += step.accepted
        self.drafted += step.nodes
        self.covered_steps += step.accepted > 0
        self.positions.add(parents, step.accepted)
        if survival is not None:
            self.calibration.add(survival, step.path)

    def add_times(self, core_micros: float, round_trip_micros: float | None) -> None:
        """Of one message to the drafter, for one or more requests."""
        self.core_micros.append(core_micros)
        if round_trip_micros is not None:
            self.round_trip_micros.append(round_trip_micros)

    def add_draft(self, content: bytes) -> None:
        """Chains the digest of what a step got to that of the steps before it."""
        self.drafts_digest = hashlib.blake2b(self.drafts_digest + content, digest_size=16).digest()

    @property
    def emitted_per_step(self) -> float:
        return self.emitted / max(self.steps, 1)

    @property
    def coverage(self) -> float:
        return self.covered_steps / max(self.steps, 1)

    @property
    def nodes_per_step(self) -> float:
        return self.drafted / max(self.steps, 1)

    @property
    def accepted_per_node(self) -> float:
        return self.accepted / max(self.drafted, 1)

    def as_dict(self) -> dict[str, object]:
        """The counts, the digest in hex, ratios and percentiles, for JSON.

        Times are microseconds; null where none was measured."""
        return {
            "workload": self.workload,
            "requests": self.requests,
            "steps": self.steps,
            "emitted": self.emitted,
            "accepted": self.accepted,
            "drafted": self.drafted,
            "covered_steps": self.covered_steps,
            "drafts_digest": self.drafts_digest.hex(),
            "emitted_per_step": self.emitted_per_step,
            "coverage": self.coverage,
            "nodes_per_step": self.nodes_per_step,
            "accepted_per_node": self.accepted_per_node,
            "calibration": self.calibration.as_dict() if self.calibration.nodes else None,
            "positions": self.positions.as_dict(),
            "core_micros_p50": percentile(self.core_micros, 50),
            "core_micros_p99": percentile(self.core_micros, 99),
            "round_trip_micros_p50": percentile(self.round_trip_micros, 50),
            "round_trip_micros_p99": percentile(self.round_trip_micros, 99),
        }


def percentile(values: list[float], percent: float) -> float | None:
    """None if there are no values."""
    return float(np.percentile(values, percent)) if values else None


def geometric_mean(values: Iterable[float]) -> float:
    """0 if there are no values, or one of them is 0."""
    logarithms = [math.log(value) if value > 0 else -math.inf for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else 0.0
