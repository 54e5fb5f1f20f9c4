"""A draft source by itself, as something to replay against: what it is worth without draftd's indexes."""

import itertools
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from draftd.replay.runner import PlainDraft, ReplayError, TimedDrafts
from draftd.replay.traces import RecordedRequest
from draftd.replay.verification import verify
from draftd.sources import REGISTRY, Batch, GuardedSource, Need, Outcome, Proposals, SourceError

OFFERED = frozenset({Need.TOKENS, Need.DEVICE})
SECONDS = 30.0  # nothing of a replay is urgent, and a draft that is left out would spoil its figures
NOTHING = PlainDraft((), (), None, b"")


def drafter_named(name: str) -> "SourceDrafter":
    """Raises ReplayError for a source that can't be had."""
    try:
        return SourceDrafter(GuardedSource(name, REGISTRY.make(name, {}, OFFERED)))
    except SourceError as error:
        raise ReplayError(str(error)) from error


class SourceRequest:
    """A request under way."""

    def __init__(self, drafter: "SourceDrafter", number: int, text: list[int]) -> None:
        self._drafter = drafter
        self.number = number
        self.text = text
        self.draft = NOTHING

    def finish(self, tokens: Sequence[int]) -> None:
        self._drafter.observe({self: tokens}, ended=[self.number])


class SourceDrafter:
    """Asks one source for everything; `min_survival` changes nothing. A context manager, which closes the source."""

    def __init__(self, source: GuardedSource) -> None:
        self._source = source
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()

    def open(self, recorded: RecordedRequest) -> SourceRequest:
        return SourceRequest(self, next(self._numbers), recorded.prompt.tolist())

    def step(self, commits: Mapping[SourceRequest, Sequence[int]], nodes: int, min_survival: float) -> TimedDrafts:
        """Raises ReplayError where the source fails or is late."""
        del min_survival
        self.observe(commits, ended=())
        for request, tokens in commits.items():
            request.text.extend(tokens)
        started = time.perf_counter_ns()
        proposals, why = self._source.ask(self._batch(list(commits)), np.full(len(commits), nodes, np.uint32), SECONDS)
        micros = (time.perf_counter_ns() - started) / 1000
        if proposals is None:
            raise ReplayError(f"draft source {self._source.name!r} gave no answer: {why}")
        for request, draft in zip(commits, _drafts(proposals), strict=True):
            request.draft = draft
        return TimedDrafts([request.draft for request in commits], micros, round_trip_micros=None)

    def observe(self, commits: Mapping[SourceRequest, Sequence[int]], ended: Sequence[int]) -> None:
        """Tells the source what the tokens that came say of its drafts."""
        drafted = [request for request in commits if request.draft.tokens]
        paths = [verify(it.draft.tokens, it.draft.parents, commits[it], 0).path for it in drafted]
        self._source.observe(
            Outcome(
                request=np.array([request.number for request in drafted], np.uint64),
                verified=np.array([len(request.draft.tokens) for request in drafted], np.uint16),
                accepted=np.array([len(path) for path in paths], np.uint16),
                ended=np.array(ended, np.uint64),
            )
        )

    def _batch(self, requests: Sequence[SourceRequest]) -> Batch:
        numbers = np.array([request.number for request in requests], np.uint64)
        start = self._source.starts(numbers)
        fresh = [request.text[first:] for request, first in zip(requests, start.tolist(), strict=True)]
        return Batch(
            request=numbers,
            start=start,
            token_end=np.cumsum([len(tokens) for tokens in fresh], dtype=np.uint32),
            tokens=np.array(list(itertools.chain.from_iterable(fresh)), np.int32),
        )


def _drafts(proposals: Proposals) -> list[PlainDraft]:
    drafts = []
    for first, end in itertools.pairwise([0, *proposals.node_end.tolist()]):
        tokens = proposals.tokens[first:end]
        parents = np.arange(-1, end - first - 1, dtype=np.int16)
        if proposals.parents is not None:
            parents = proposals.parents[first:end]
        survival = None if proposals.survival is None else proposals.survival[first:end]
        content = tokens.tobytes() + parents.tobytes() + (b"" if survival is None else survival.tobytes())
        drafts.append(PlainDraft(tokens.tolist(), parents.tolist(), survival, content))
    return drafts
