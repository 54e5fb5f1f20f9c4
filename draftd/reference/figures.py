"""What an engine counts."""

from dataclasses import dataclass, field
from typing import Any

from draftd.reference.events import CountOutcome, Reason, Status


def count(counts: list[int], place: int, more: int = 1) -> None:
    """Adds to an entry of a list that is as long as it must be."""
    counts.extend([0] * (place + 1 - len(counts)))
    counts[place] += more


@dataclass
class Acceptance:
    """What became of tails; lists are by depth, the first drafted position first."""

    drafts: int = 0
    """Commits that used a tail."""

    covered: int = 0
    """Of them, those that accepted at least one node."""

    verified: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    def add(self, outcome: CountOutcome) -> None:
        self.drafts += 1
        self.covered += outcome.accepted > 0
        for depth, nodes in enumerate(outcome.verified):
            if nodes:
                count(self.verified, depth, nodes)
        for depth in range(outcome.accepted):
            count(self.accepted, depth)


@dataclass
class Figures:
    steps: int = 0
    """Commits that brought new tokens, not the first of the output."""

    acceptance: Acceptance = field(default_factory=Acceptance)
    delivered_tails: int = 0
    delivered: list[int] = field(default_factory=list)
    stale_tails: int = 0
    ignored_closes: int = 0
    evicted_sessions: int = 0
    acceptance_of_requests: float = 0.0
    requests_measured: int = 0
    taken_over_tokens: int = 0
    empty_tails: list[int] = field(default_factory=list)
    row_errors: list[int] = field(default_factory=list)

    def count_tail(self, parents: list[int], reason: Reason, times: int = 1) -> None:
        """`times` -1: it was not delivered after all."""
        if not parents:
            count(self.empty_tails, reason, times)
            return
        self.delivered_tails += times
        depths: list[int] = []
        for parent in parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
            count(self.delivered, depths[-1], times)

    def count_status(self, status: Status) -> None:
        if status is not Status.OK:
            count(self.row_errors, status)

    def count_closed(self, acceptance: Acceptance) -> None:
        verified = sum(acceptance.verified)
        if verified:
            self.acceptance_of_requests += sum(acceptance.accepted) / verified
            self.requests_measured += 1

    def as_dict(self) -> dict[str, Any]:
        """By the names of native.Engine.statistics."""
        return {
            "steps": self.steps,
            "drafts": self.acceptance.drafts,
            "covered_steps": self.acceptance.covered,
            "verified_per_position": self.acceptance.verified,
            "accepted_per_position": self.acceptance.accepted,
            "delivered_tails": self.delivered_tails,
            "delivered_per_position": self.delivered,
            "stale_tails": self.stale_tails,
            "ignored_closes": self.ignored_closes,
            "accompanied_steps": 0,  # there is one thread
            "evicted_sessions": self.evicted_sessions,
            "forgotten_tokens": 0,  # nothing is
            "taken_over_tokens": self.taken_over_tokens,
            "acceptance_of_requests": self.acceptance_of_requests,
            "requests_measured": self.requests_measured,
            "empty_tails": self.empty_tails,
            "row_errors": self.row_errors,
        }
