"""The replay itself: requests one after another, each verified against what was recorded.

The first output token comes from prefill and is no step. From then on each step drafts within its budget, the longest
path of the draft that agrees with the recorded output is accepted, one bonus token follows, and both are committed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from draftd.replay.budgets import StepBudget
from draftd.replay.result import ReplayResult
from draftd.replay.traces import RecordedRequest
from draftd.replay.verification import verify


class ReplayError(RuntimeError):
    """The replay cannot go on, or its figures would not count. The message says which request and why."""


@dataclass(frozen=True, slots=True)
class TimedDraft:
    """A draft as lists, and what it took."""

    tokens: Sequence[int]
    parents: Sequence[int]
    content: bytes  # all that was drafted, as delivered: what tells two drafts apart
    core_micros: float
    round_trip_micros: float | None  # None: there was no trip


class OpenedRequest(Protocol):
    """A request under way at a drafter."""

    def step(self, tokens: Sequence[int], nodes: int, min_survival: float) -> TimedDraft:
        """Commits tokens, then drafts."""

    def finish(self, tokens: Sequence[int]) -> None:
        """Commits the last tokens and closes the request."""


class Drafter(Protocol):
    """Anything that can be replayed against."""

    def open(self, recorded: RecordedRequest) -> OpenedRequest: ...


def replay(requests: Iterable[RecordedRequest], drafter: Drafter, budget: StepBudget, result: ReplayResult) -> None:
    """Replays in the given order, adding to `result` as it goes, so that another thread can show progress."""
    for recorded in requests:
        _replay_request(recorded, drafter, budget, result)
        result.requests += 1


def _replay_request(recorded: RecordedRequest, drafter: Drafter, budget: StepBudget, result: ReplayResult) -> None:
    output = recorded.output.tolist()
    request = drafter.open(recorded)
    committed = 0
    position = 1
    while position < len(output):
        nodes = budget.nodes()
        draft = request.step(output[committed:position], nodes, budget.min_survival)
        step = verify(draft.tokens, draft.parents, output, position)
        if step.nodes > nodes:
            raise ReplayError(f"{recorded.id}: asked for {nodes} nodes at output token {position}, got {step.nodes}")
        budget.spent(step.nodes)
        result.add_step(step)
        result.add_draft(draft.content)
        result.core_micros.append(draft.core_micros)
        if draft.round_trip_micros is not None:
            result.round_trip_micros.append(draft.round_trip_micros)
        committed, position = position, position + step.emitted
    request.finish(output[committed:])
