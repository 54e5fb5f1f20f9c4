"""Where rounding leaves nothing of a distribution, all of it decides."""

import numpy as np
import pytest

from draftd.verify.rules import Block, Chance, OneHot, Proposal, Rejection, Rule
from tests.unit.verify.exhaustive import distribution

HALF = np.full((3, 2), 0.5)
A_HAIR_LESS = np.array([[0.5, 0.5 - 2.0**-54]] * 3)  # as rounding has it
CHAIN = Proposal(np.array([1], np.int32), np.array([-1], np.int16), HALF[:2])
BOTH = Proposal(np.array([0, 1], np.int32), np.array([-1, -1], np.int16), HALF)


@pytest.mark.parametrize(("rule", "proposal"), [(Rejection(), CHAIN), (Block(), CHAIN), (OneHot(), BOTH)])
def test_what_is_rejected_by_a_hair_leaves_the_target(rule: Rule, proposal: Proposal) -> None:
    def where_all_is_rejected(chance: Chance) -> int | None:
        verdict = rule.verify(proposal, A_HAIR_LESS, chance)
        return None if verdict.path else verdict.bonus

    found = distribution(where_all_is_rejected)
    assert 0.0 < found[0] < 2.0**-50
    assert found[1] == pytest.approx(found[0], rel=1e-9)
