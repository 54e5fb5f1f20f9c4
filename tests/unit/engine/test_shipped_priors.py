"""The priors that come with draftd."""

from draftd import native
from draftd.config import DraftingSettings
from draftd.priors import read_priors


def test_they_are_of_this_version_and_the_default() -> None:
    assert DraftingSettings().priors == "shipped"
    shipped, by_hand = native.Model.load(read_priors("shipped")), native.Model()
    assert (shipped.trials != by_hand.trials).any()
    assert (shipped.agreement != by_hand.agreement).any()
    assert 0 < (shipped.trials - by_hand.trials).max() <= 4.001, "one's own traffic soon counts for more"
