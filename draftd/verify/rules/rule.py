"""What every acceptance rule takes and gives."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from draftd.verify.rules.chance import Chance

ROOT = -1


@dataclass(frozen=True, slots=True)
class Proposal:
    """Drafted tokens of one request, a tree below its committed text.

    Row 0 of anything that has a row per place is the committed text, row i + 1 is node i. Raises ValueError for a
    parent that does not come before its child, for siblings with the same token, and for a token of probability 0.
    """

    tokens: NDArray[np.int32]  # int32[n]
    parents: NDArray[np.int16]  # int16[n]: a smaller number, or -1 for the committed text
    # float64[n + 1, vocabulary]: what the children of each row were sampled from, the first from the row's distribution
    # and each further one from what is left of it without those before; None: the drafter did not sample
    probabilities: NDArray[np.float64] | None = None
    children: list[list[int]] = field(init=False)  # of each row: nodes, in their order

    def __post_init__(self) -> None:
        children: list[list[int]] = [[] for _ in range(len(self.tokens) + 1)]
        for node, parent in enumerate(self.parents.tolist()):
            if not ROOT <= parent < node:
                raise ValueError(f"node {node} has parent {parent}; parents come before their children, -1 is the text")
            if any(self.tokens[sibling] == self.tokens[node] for sibling in children[parent + 1]):
                raise ValueError(f"node {node} repeats token {self.tokens[node]} of a sibling; draft it once")
            if self.probabilities is not None and not self.probabilities[parent + 1, self.tokens[node]] > 0.0:
                raise ValueError(f"node {node} has probability 0 of its token {self.tokens[node]}; it can't be sampled")
            children[parent + 1].append(node)
        object.__setattr__(self, "children", children)

    def chain(self) -> NDArray[np.int32]:
        """int32[n]: the tokens. Raises ValueError for a tree that is no chain."""
        if any(len(nodes) > 1 for nodes in self.children):
            raise ValueError("this rule is for chains; open the request with shape='chain'")
        return self.tokens

    def sampled_from(self) -> NDArray[np.float64]:
        """float64[n + 1, vocabulary]: `probabilities`. Raises ValueError where the drafter stated none."""
        if self.probabilities is None:
            raise ValueError("this rule needs the probabilities that drafts were sampled with; use OneHot without them")
        return self.probabilities


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one verify step emits: the tokens of the accepted nodes, and one more."""

    path: list[int]  # accepted nodes, from the committed text down
    bonus: int  # the token after them


class Rule(Protocol):
    """Decides which drafted tokens stand, and what follows them."""

    lossless: ClassVar[bool]  # is what it emits distributed exactly as the target's own output?

    def verify(self, proposal: Proposal, target: NDArray[np.float64], chance: Chance) -> Verdict:
        """`target`: float64[n + 1, vocabulary], the target's distribution of the token after each row."""
