"""The replay itself: recorded requests, each verified against what was recorded.

The first output token comes from prefill and is no step. From then on each step drafts within its budget, the longest
path of the draft that agrees with the recorded output is accepted, one bonus token follows, and both are committed.
Several requests under way share a message, as they share a forward pass of an engine; each of them still counts a step.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from draftd.replay.arrivals import Arrivals
from draftd.replay.budgets import StepBudget
from draftd.replay.result import ReplayResult
from draftd.replay.traces import RecordedRequest
from draftd.replay.verification import verify


class ReplayError(RuntimeError):
    """The replay cannot go on, or its figures would not count. The message says which request and why."""


@dataclass(frozen=True, slots=True)
class PlainDraft:
    """What one request was drafted."""

    tokens: Sequence[int]
    parents: Sequence[int]
    survival: NDArray[np.float32] | None  # None: the drafter states none
    content: bytes  # all that was drafted, as delivered: what tells two drafts apart


@dataclass(frozen=True, slots=True)
class TimedDrafts:
    """The drafts of one step, one per request, and what they took together."""

    drafts: Sequence[PlainDraft]
    core_micros: float
    round_trip_micros: float | None  # None: there was no trip


class OpenedRequest(Protocol):
    """A request under way at a drafter."""

    def finish(self, tokens: Sequence[int]) -> None:
        """Commits the last tokens and closes the request."""


Opened = TypeVar("Opened", bound=OpenedRequest)


class Drafter(Protocol[Opened]):
    """Anything that can be replayed against."""

    def open(self, recorded: RecordedRequest) -> Opened: ...

    def step(self, commits: Mapping[Opened, Sequence[int]], nodes: int, min_survival: float) -> TimedDrafts:
        """Commits each request's tokens, then drafts at most `nodes` for each."""


class _Progress:
    """How far the verification of one request is."""

    def __init__(self, recorded: RecordedRequest) -> None:
        self.recorded = recorded
        self.output: list[int] = recorded.output.tolist()
        self._committed = 0
        self.position = 1  # of the next token to verify

    @property
    def complete(self) -> bool:
        return self.position == len(self.output)

    def advance(self, emitted: int) -> None:
        self.position += emitted

    def take_uncommitted(self) -> list[int]:
        tokens = self.output[self._committed : self.position]
        self._committed = self.position
        return tokens


def replay(
    requests: Iterable[RecordedRequest],
    drafter: Drafter[Opened],
    budget: StepBudget,
    result: ReplayResult,
    concurrency: int = 1,
) -> None:
    """Replays in the given order, up to `concurrency` requests at once, of a session never more than one.

    Adds to `result` as it goes, so that another thread can show progress.
    """
    arrivals = Arrivals(requests)
    under_way: dict[Opened, _Progress] = {}

    def start() -> None:
        while len(under_way) < concurrency and (recorded := arrivals.start_next()) is not None:
            under_way[drafter.open(recorded)] = _Progress(recorded)

    start()
    while under_way:
        _step({request: it for request, it in under_way.items() if not it.complete}, drafter, budget, result)
        ended = [(request, it) for request, it in under_way.items() if it.complete]
        for request, progress in ended:
            request.finish(progress.take_uncommitted())
            del under_way[request]
            arrivals.ended(progress.recorded)
            result.requests += 1
        if ended:
            start()


def _step(
    requests: Mapping[Opened, _Progress], drafter: Drafter[Opened], budget: StepBudget, result: ReplayResult
) -> None:
    if not requests:
        return
    nodes = budget.nodes(len(requests))
    commits = {request: progress.take_uncommitted() for request, progress in requests.items()}
    answer = drafter.step(commits, nodes, budget.min_survival)
    result.add_times(answer.core_micros, answer.round_trip_micros)
    for draft, progress in zip(answer.drafts, requests.values(), strict=True):
        step = verify(draft.tokens, draft.parents, progress.output, progress.position)
        if step.nodes > nodes:
            raise ReplayError(
                f"{progress.recorded.id}: asked for {nodes} nodes at output token {progress.position}, got {step.nodes}"
            )
        budget.spent(step.nodes)
        result.add_step(step, draft.parents, draft.survival)
        result.add_draft(draft.content)
        progress.advance(step.emitted)
