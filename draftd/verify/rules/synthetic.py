"""What if so many tokens were accepted? For measuring an engine without a drafter that is so good."""

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance
from draftd.verify.rules.rule import Proposal, Verdict


class Synthetic:
    """Accepts as many nodes as a given curve has it, along the first children, whatever their tokens are.

    LOSSY: the text is not the target's; only its amount means something. What vLLM calls
    `rejection_sample_method="synthetic"`. Drafts have to be as deep as the curve: nothing is accepted that was not
    drafted. `curve[i]` is the probability that at least i + 1 drafted tokens are accepted. Raises ValueError for a
    curve that rises or leaves the range of probabilities.
    """

    lossless: ClassVar = False

    def __init__(self, curve: Sequence[float]) -> None:
        for before, after in itertools.pairwise((1.0, *curve, 0.0)):
            if not before >= after:
                raise ValueError(f"the curve {list(curve)} goes from {before} to {after}; it falls from 1 to 0")
        self.curve = tuple(curve)

    @classmethod
    def staircase(cls, mean_accepted: float) -> "Synthetic":
        """The curve of that mean accepted length, in tokens without the bonus, that varies least."""
        if not 0.0 <= mean_accepted < math.inf:
            raise ValueError(f"the mean accepted length is {mean_accepted}; give 0 or more")
        always, part = divmod(mean_accepted, 1)
        return cls([1.0] * int(always) + [part])

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        path: list[int] = []
        row = 0
        for before, probability in itertools.pairwise((1.0, *self.curve)):
            children = proposal.children[row]
            if not children or not before or not chance.happens(probability / before):
                break
            path.append(children[0])
            row = children[0] + 1
        return Verdict(path, chance.draw(target[row]))

    def __repr__(self) -> str:
        return f"Synthetic({list(self.curve)})"
