"""When a request that drafts can't help is left alone for a while: the twin of cpp/include/draftd/rest.h."""

from dataclasses import dataclass, replace

MOST_DOUBLED = 4


@dataclass(frozen=True, slots=True)
class PaceRules:
    """What holds for a request in paced steps; draftd/native/_core.pyi says more."""

    rest_after: int = 0
    rest_steps: int = 0
    long_run_tokens: int = 0
    long_run_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Rest:
    """After so many rejected drafts in a row a request rests; then one more is tried.

    Each try that fails makes the rest twice as long, up to 16 times; an accepted node ends all that.
    """

    rejected: int = 0
    """Drafts since the last accepted node."""

    doubled: int = 0
    left: int = 0
    """Steps of a rest."""

    due: bool = False
    """There was a rejection that no rest has followed."""

    def outcome(self, accepted: bool) -> "Rest":
        """After nodes of a draft were verified."""
        return Rest() if accepted else replace(self, rejected=self.rejected + 1, due=True)

    def wanted(self, rules: PaceRules) -> tuple["Rest", bool]:
        """A draft is wanted: what comes next, and whether the request rests instead."""
        rest = self
        if self.due and 0 < rules.rest_after <= self.rejected:
            left = rules.rest_steps << self.doubled
            rest = replace(self, left=left, doubled=min(self.doubled + 1, MOST_DOUBLED))
        rests = rest.left > 0
        return replace(rest, due=False, left=max(rest.left - 1, 0)), rests
