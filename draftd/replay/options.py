"""What a replay asks of the drafter."""

from dataclasses import dataclass, replace
from typing import get_args

from draftd.client.opening import PresetName
from draftd.replay.budgets import FixedBudget, MeanBudget, StepBudget
from draftd.replay.client_drafter import Shape, Share
from draftd.replay.runner import ReplayError
from draftd.sources import REGISTRY

DEFAULT_BUDGET = 16

PRESETS: tuple[PresetName, ...] = get_args(PresetName)
COMPARED = (*PRESETS, "ngram")
"""What is replayed side by side where nothing is chosen."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What of the recordings is replayed, and how. Raises ReplayError for wishes that contradict each other.

    `requests` is how many of each file are replayed, from its start; None: all of them.
    `budget` limits the nodes of every step, `mean_budget` their mean over the file; 16 a step without either.
    Nodes whose survival is below `min_survival` are not drafted; a mean budget finds a threshold of its own.
    `concurrency` is how many requests are under way at once; of a session, whose turns go on where the one before
    ended, never more than one. `shape` and `share` are those of `Client.open`. Without `preset` the drafter does as
    it was configured to. With `source` draftd does not draft at all, but that draft source by itself.
    """

    requests: int | None = None
    budget: int | None = None
    mean_budget: int | None = None
    min_survival: float = 0.0
    concurrency: int = 1
    shape: Shape = "tree"
    share: Share = "outputs"
    preset: PresetName | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.preset is not None and self.source is not None:
            raise ReplayError(f"preset {self.preset} and source {self.source} are both given: one of them drafts")
        if self.budget is not None and self.mean_budget is not None:
            raise ReplayError("give a budget or a mean budget, not both")
        if self.mean_budget is not None and self.min_survival:
            raise ReplayError("a mean budget finds its own threshold: give a budget with min_survival")

    def drafted_by(self, word: str) -> "ReplayOptions":
        """The same, drafted by the preset or the draft source of that name.

        Raises ReplayError for another word, and for one that is the name of both."""
        sources = REGISTRY.names()
        for preset in PRESETS:
            if preset == word and word in sources:
                raise ReplayError(
                    f"{word!r} is a preset, and a draft source that is installed: that needs another name"
                )
            if preset == word:
                return replace(self, preset=preset, source=None)
        if word not in sources:
            raise ReplayError(
                f"there is no preset or draft source {word!r}; choose one of {', '.join([*PRESETS, *sources])}"
            )
        return replace(self, preset=None, source=word)

    def step_budget(self) -> StepBudget:
        """A new one for each file."""
        if self.mean_budget is not None:
            return MeanBudget(self.mean_budget)
        return FixedBudget(self.budget or DEFAULT_BUDGET, self.min_survival)

    def __str__(self) -> str:
        limit = f"at most {self.budget or DEFAULT_BUDGET} nodes a step"
        if self.mean_budget is not None:
            limit = f"a mean of {self.mean_budget} nodes"
        if self.min_survival:
            limit += f" of survival {self.min_survival:g} or more"
        at_once = f", {self.concurrency} requests at once" if self.concurrency > 1 else ""
        preset = f"preset {self.preset}, " if self.preset else f"source {self.source}, " if self.source else ""
        first = f", the first {self.requests} requests" if self.requests is not None else ""
        return f"{preset}{self.shape}, {limit}, shared: {self.share}{at_once}{first}"
