"""What a namespace learned from its verifiers, slow and readable: the twin of cpp/src/learn.

Cells count, for each kind of evidence, how often it was right; the logit of that is what such evidence says. A
candidate has eight inputs: what the three longest contexts say of it, the request's pairs, the history's pairs, the
logit of the blend, a constant or the rank among frequent tokens, and what a draft source says. Mixed with learned
weights they give its logit (online logistic mixing: Mattern 2013, "Linear and geometric mixtures"). The weights are the
sum of two sets: one by how many contexts know the candidate, one by how it stands at the longest. Last, the survival of
a node, the product of its path's probabilities, is corrected by what became of nodes that were drafted with it.

Singles where the C++ has them, in the order of its operations, for the same bits.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from draftd.reference import cells
from draftd.reference.logistic import Floats, logit, squash, stretch

INPUTS = 8
BLEND = 5

MOST_TRIALS = 256
"""Past it, counts are halved: traffic changes."""

LEAST_ERROR = np.float32(0.002)
"""Gradients below this are noise, and most there are."""

SLOWEST, FASTER, SETTLING = 0.0005, 0.005, 3000
"""After n lessons weights move by SLOWEST + FASTER / (1 + n / SETTLING)."""

CORRECTION = np.float32(0.05)
"""By how much of an error the correction of survival moves."""

KNOTS = 72
KNOTS_PER_LOGIT = np.float32(2.5)
LOWEST_LOGIT = np.float32(-14)
MOST_FALL = np.float32(1) / KNOTS_PER_LOGIT
"""From one knot to the next: survival must not fall when raw rises, or trees would not be in its order."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible continuation of a node, as the model sees it."""

    token: int
    blend: np.float32  # logit of what prediction by partial matching says
    cells: tuple[int, ...]  # one for each input; the blend's is of no use
    agreement: int
    standing: int


@dataclass(slots=True)
class Lesson:
    """What a tree was made from, kept until it is known what followed. Empty for a preset's."""

    candidates: list[list[Candidate]] = field(default_factory=list)
    """Of the root and of each node; none where a node was not expanded."""

    raw: list[float] = field(default_factory=list)
    """Survival of each node before it is corrected."""

    def first(self, nodes: int) -> "Lesson":
        """Of the root and the first nodes of the tree."""
        return Lesson(self.candidates[: nodes + 1], self.raw[:nodes])


class Model:
    """Knows nothing at first but a start set by hand."""

    def __init__(self) -> None:
        self.hits, self.trials = start_by_hand()
        self.agreement = start_of_weights()
        self.standing = start_of_standings()
        self.correction = np.zeros(KNOTS, np.float32)
        self.lessons = 0

    def copy(self) -> "Model":
        return deepcopy(self)

    def probabilities(self, candidates: Sequence[Candidate]) -> Floats:
        """For each candidate of one node that it is what follows; one by one, so that the sum may pass 1."""
        agreement = self.agreement[[candidate.agreement for candidate in candidates]]
        standing = self.standing[[candidate.standing for candidate in candidates]]
        return squash(mix(agreement, standing, self._inputs(candidates)))

    def _inputs(self, candidates: Sequence[Candidate]) -> Floats:
        """[candidates, inputs] What the evidence says."""
        numbers = np.array([candidate.cells for candidate in candidates], np.intp).reshape(-1, INPUTS)
        inputs = stretch(self.hits[numbers] / self.trials[numbers])
        inputs[numbers == cells.NOTHING] = 0
        inputs[numbers == cells.CONSTANT] = 0.5
        inputs[:, BLEND] = [candidate.blend for candidate in candidates]
        return inputs

    def learn(self, candidates: Sequence[Candidate], followed: int) -> None:
        """One node's candidates, and what followed it."""
        if candidates:
            self.lessons += 1
            self._move_weights(candidates, followed)
            self._count(candidates, followed)

    def _move_weights(self, candidates: Sequence[Candidate], followed: int) -> None:
        """Down the gradient of the coding cost, from what was thought of all of them before."""
        rate = np.float32(SLOWEST + FASTER / (1.0 + self.lessons / SETTLING))
        outcomes = np.array([candidate.token == followed for candidate in candidates], np.float32)
        inputs, errors = self._inputs(candidates), outcomes - self.probabilities(candidates)
        for candidate, moved_by, error in zip(candidates, inputs, errors, strict=True):
            if abs(error) >= LEAST_ERROR:
                move = rate * error * moved_by
                self.agreement[candidate.agreement] += move
                self.standing[candidate.standing] += move

    def _count(self, candidates: Sequence[Candidate], followed: int) -> None:
        for candidate in candidates:
            for cell in candidate.cells:
                if cell < cells.KNOWN:
                    continue
                self.hits[cell] += candidate.token == followed
                self.trials[cell] += 1
                if self.trials[cell] > MOST_TRIALS:
                    self.hits[cell] *= 0.5
                    self.trials[cell] *= 0.5

    def survival(self, raw: float) -> float:
        """Of a node whose probabilities multiply to `raw`."""
        return float(self._corrected(*place_of(raw)))

    def _corrected(self, z: Floats, knot: int, above: Floats) -> Floats:
        """What is added to the logit is linear between two knots."""
        low, high = self.correction[knot : knot + 2]
        return squash(z + (low + (high - low) * above))

    def learn_survival(self, raw: float, accepted: bool) -> None:
        """What became of a node that went through the target."""
        z, knot, above = place_of(raw)
        step = (np.float32(accepted) - self._corrected(z, knot, above)) * CORRECTION
        knots = self.correction
        knots[knot] += step * (1 - above)
        knots[knot + 1] += step * above
        if knot > 0:
            knots[knot] = max(knots[knot], knots[knot - 1] - MOST_FALL)
        knots[knot + 1] = max(knots[knot + 1], knots[knot] - MOST_FALL)
        if knot + 2 < KNOTS:
            knots[knot + 1] = min(knots[knot + 1], knots[knot + 2] + MOST_FALL)
        knots[knot] = min(knots[knot], knots[knot + 1] + MOST_FALL)


def mix(agreement: Floats, standing: Floats, inputs: Floats) -> Floats:
    """The weighted sum along the last axis, in the order in which four are added at a time."""
    weighed = (agreement + standing) * inputs
    sums = weighed[..., :4] + weighed[..., 4:]
    mixed: Floats = (sums[..., 0] + sums[..., 2]) + (sums[..., 1] + sums[..., 3])
    return mixed


def place_of(raw: float) -> tuple[Floats, int, Floats]:
    """Logit of a survival, the knot below it, and the share of the way to the next."""
    z = logit(np.array(raw, np.float32), 1e-6, 0.9999)
    position = (z - LOWEST_LOGIT) * KNOTS_PER_LOGIT
    knot = int(position)
    return z, knot, position - np.float32(knot)


def start_by_hand() -> tuple[Floats, Floats]:
    """Hits and trials of each cell, by what the evidence claims, as if it had been met twice."""

    def axis(values: Sequence[float], place: int) -> Floats:
        """Middles of classes, along that axis of a table by origin, length, total and share."""
        return np.array(values, np.float32).reshape([-1 if axis == place else 1 for axis in range(4)])

    shares = [0.05, 0.17, 0.37, 0.6, 0.8, 0.95, 1]
    length = axis([1, 1, 2, 3, 4, 5.5, 8, 12, 22, 48], 1)
    total = axis([1, 2, 3.5, 6, 16, 64], 2)
    claims = axis(shares, 3) * total / (total + 1) * length / (length + 2)
    kinds = math.prod(cells.PER_CONTEXT[1:])

    probability = np.full(cells.COUNT, 0.5, np.float32)
    probability[cells.KNOWN : cells.MISSED] = np.broadcast_to(
        claims[..., np.newaxis], (*cells.CONTEXTS, len(shares), kinds)
    ).ravel()
    misses = np.array([0.02, 0.025, 0.03, 0.03, 0.03], np.float32)
    probability[cells.MISSED : cells.PAIRED] = np.tile(misses, math.prod(cells.CONTEXTS))
    of_pairs = np.full(cells.PER_PAIRS, 0.02, np.float32)
    of_pairs[: math.prod(cells.PER_PAIR)] = np.broadcast_to(
        0.3 * np.array(shares, np.float32)[:, np.newaxis], cells.PER_PAIR
    ).ravel()
    probability[cells.PAIRED : cells.FREQUENT] = np.tile(of_pairs, 2)
    probability[cells.FREQUENT : cells.DRAFTED] = 0.01
    # A model's likeliest token is accepted more often than it states where the target is greedy, and as often where it
    # samples: between the two.
    stated = [0.2, 0.28, 0.43, 0.57, 0.73, 0.85, 0.91, 0.955, 0.98, 0.99, 0.995, 0.998]
    claimed = np.array([*stated, 0.6, 0.2, 0.1], np.float32)[:, np.newaxis]
    probability[cells.DRAFTED : cells.UNDRAFTED] = np.broadcast_to(claimed, cells.PER_DRAFTED).ravel()
    probability[cells.UNDRAFTED :] = np.broadcast_to(  # of what the source leaves, one of others has a quarter
        np.float32(0.25) * (1 - claimed) + np.float32(0.003), cells.PER_DRAFTED
    ).ravel()
    trials = np.full(cells.COUNT, 2, np.float32)
    return probability * trials, trials


def start_of_weights() -> Floats:
    """Most weight on the longest context that has the candidate."""
    weights = np.full((*cells.AGREEMENTS, INPUTS), [0.05, 0.05, 0.05, 0.15, 0.15, 0.5, 0, 0.8], np.float32)
    for longest in range(cells.LEVELS):
        weights[longest, ..., longest] = 0.45
    return weights.reshape(-1, INPUTS)


def start_of_standings() -> Floats:
    """What a draft source has is believed as the source is: that indexes lack it says little, and what they say of it
    counts for less than half."""
    weights = np.zeros((len(cells.Proposer), cells.PER_PROPOSER, INPUTS), np.float32)
    weights[cells.Proposer.DRAFT_SOURCE] = [-0.3, -0.05, -0.05, -0.15, -0.15, -0.5, 0, 0.2]
    weights[cells.Proposer.BOTH] = [-0.25, -0.03, -0.03, -0.09, -0.09, -0.3, 0, 0.2]
    return weights.reshape(-1, INPUTS)
