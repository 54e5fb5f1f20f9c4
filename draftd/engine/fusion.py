"""Draft sources beside the indexes, in one tree: asked for the requests of a step that have little, and then all of the
step is drafted once more, with what they have as further evidence.

What of it survives the core decides, by what it learned of the source (draftd/reference/candidates.py).
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from draftd import native
from draftd.engine.asked_sources import AskedSource, AskedSources
from draftd.engine.hidden_states import HeldStates, no_states
from draftd.engine.proposed import Committed, Proposed, depth_along
from draftd.engine.trees import Trees
from draftd.sources import Batch, HiddenStates, Outcome, Proposals
from draftd.sources.source import begins
from draftd.wire import DraftClose, Namespace, Status, StepBatch

LONGEST = 2**32 - 1  # tokens of a text


@dataclass(slots=True)
class FusedRequest:
    """A request that a source may be asked for."""

    number: int  # that the source knows it by
    epoch: int
    namespace: Namespace
    seen: float
    reads_states: bool  # of the target: its source does
    asked: AskedSource | None = None  # that was ever shown it
    unchanged: int = LONGEST  # tokens of its text that are what the source was shown, if it was shown as many
    drafted: "Drafted | None" = None  # in the last step


class Drafted(NamedTuple):
    """A draft for which a source was asked and answered, perhaps with nothing; its outcome is to come."""

    base: int  # tokens of the text that it continues
    expected: float  # accepted tokens, by the indexes
    alone: list[tuple[int, int]]  # the indexes' draft: of each node its parent and its token
    nodes: int  # of the draft
    proposed: Proposed | None = None


class _Row(NamedTuple):
    row: int
    request: FusedRequest
    expected: float  # accepted tokens, by the indexes


@dataclass(slots=True)
class _Answers:
    """What sources propose for rows of a step."""

    nodes: dict[int, tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.float32]]] = field(default_factory=dict)
    """Of rows that they have any for: tokens, parents, survivals."""

    def add(self, rows: Sequence[_Row], proposals: Proposals) -> None:
        first = 0
        for row, end in zip(rows, proposals.node_end.tolist(), strict=True):
            nodes = end - first
            chain = np.arange(-1, nodes - 1, dtype=np.int16)
            parents = chain if proposals.parents is None else proposals.parents[first:end]
            unstated = np.full(nodes, -1, np.float32)
            survival = unstated if proposals.survival is None else proposals.survival[first:end]
            if nodes:
                self.nodes[row.row] = (proposals.tokens[first:end], parents, survival)
            first = end

    def columns(self, rows: int) -> tuple[bytes, bytes, bytes, bytes]:
        """As native.Engine.redraft takes them."""
        ends = np.zeros(rows, np.uint32)
        for row, (tokens, _, _) in self.nodes.items():
            ends[row] = len(tokens)
        by_row = [self.nodes[row] for row in sorted(self.nodes)]
        tokens, parents, survival = (np.concatenate(column) for column in zip(*by_row, strict=True))
        return np.cumsum(ends, dtype=np.uint32).tobytes(), tokens.tobytes(), parents.tobytes(), survival.tobytes()


class Fusion:
    """Of one engine. Steps of different verifiers may come at the same time, those of one do not."""

    def __init__(self, core: native.Engine, sources: AskedSources) -> None:
        self._core = core
        self._sources = sources
        self._numbers = count(1)
        self._requests: dict[int, dict[int, FusedRequest]] = {}  # by verifier and handle
        self._coming_and_going = Lock()  # of verifiers
        self._states = HeldStates()

    def wants_states(self, tenant: str, model: str) -> bool:
        """Whether a source reads hidden states of that tenant's model."""
        return self._sources.reads_states(tenant, model)

    def opened(self, verifier: int, handle: int, epoch: int, namespace: Namespace, now: float) -> None:
        self._end(verifier, handle)
        if self._sources.any_for(namespace):
            with self._coming_and_going:
                of_verifier = self._requests.setdefault(verifier, {})
                reads_states = self._sources.reads_states(namespace.tenant, namespace.model)
                of_verifier[handle] = FusedRequest(next(self._numbers), epoch, namespace, now, reads_states)

    def closed(self, verifier: int, close: DraftClose) -> None:
        of_verifier = self._requests.get(verifier)
        if not of_verifier:
            return
        handles, epochs = np.frombuffer(close.request, "<u4").tolist(), np.frombuffer(close.epoch, "<u4").tolist()
        for handle, epoch in zip(handles, epochs, strict=True):
            request = of_verifier.get(handle)
            if request is not None and request.epoch == epoch:
                self._end(verifier, handle)

    def expire(self, since: float) -> None:
        """Requests that have not been heard of since then are over."""
        for verifier, of_verifier in list(self._requests.items()):
            for handle, request in list(of_verifier.items()):
                if request.seen < since:
                    self._end(verifier, handle)
            with self._coming_and_going:
                if not of_verifier:
                    self._requests.pop(verifier, None)

    def close(self) -> None:
        self._requests.clear()
        self._states.clear()
        self._sources.close()

    def improved(
        self,
        batch: StepBatch,
        hidden: HiddenStates | None,
        columns: native.StepColumns,
        tails: native.Tails,
        cost: native.StepCost | None,
        now: float,
    ) -> tuple[native.Tails, float]:
        """The answer to a step, with what sources have where asking them is worth it, and the seconds that the core
        took for that. `hidden`: states that the step brings."""
        of_verifier = self._requests.get(batch.verifier)
        if not of_verifier:
            return tails, 0.0
        self._hold(of_verifier, batch, hidden, tails)
        alone = Trees(tails)
        asked: dict[AskedSource, list[_Row]] = {}
        for row in self._rows(of_verifier, batch, tails, alone, now):
            source = self._sources.of(row.request.namespace)
            if source is not None and source.worth.asks(row.expected):
                asked.setdefault(source, []).append(row)
        answers = _Answers()
        began = time.perf_counter()
        for source, rows in asked.items():
            self._ask(source, rows, batch, tails, alone, time.perf_counter() - began, answers)
        if not answers.nodes:
            return tails, 0.0
        nodes = answers.columns(len(batch.commit.request) // 4)
        began = time.perf_counter()
        improved = self._core.redraft(batch.verifier, columns, tails, *nodes, batch.budget, batch.min_survival, cost)
        seconds = time.perf_counter() - began
        trees = Trees(improved)
        for row in (row for rows in asked.values() for row in rows):
            if row.row in answers.nodes:
                tokens, parents, _ = answers.nodes[row.row]
                draft = trees.nodes(row.row)
                proposed = Proposed.of(tokens, parents, draft)
                if row.request.drafted is not None:
                    row.request.drafted = row.request.drafted._replace(nodes=len(draft), proposed=proposed)
        return improved, seconds

    def _rows(
        self,
        of_verifier: dict[int, FusedRequest],
        batch: StepBatch,
        tails: native.Tails,
        alone: Trees,
        now: float,
    ) -> Iterable[_Row]:
        """The rows that may have nodes. What their commits say of the sources' last proposals is passed on.

        `alone`: the trees of `tails`."""
        commit, committed = batch.commit, Committed(batch.commit)
        handles = np.frombuffer(commit.request, "<u4").tolist()
        starts = np.frombuffer(commit.start, "<u4").tolist()
        brings_tokens = np.diff(np.frombuffer(commit.token_end, "<u4"), prepend=0) > 0
        tail_bases = np.frombuffer(commit.tail_base, "<u4").tolist()
        allowed = np.frombuffer(tails.allowed, "<u2").tolist()
        accepted_of_row = np.frombuffer(tails.accepted, "<i2").tolist()
        rows: dict[int, _Row] = {}  # by the request's number, once each, whatever a verifier says twice
        told: dict[AskedSource, list[tuple[int, int, int]]] = {}
        for row, handle in enumerate(handles):
            request = of_verifier.get(handle)
            if request is None:
                continue
            request.seen = now
            request.unchanged = min(request.unchanged, starts[row])
            drafted, request.drafted = request.drafted, None
            source = self._sources.of(request.namespace)
            if source and drafted and drafted.base == starts[row] and brings_tokens[row]:
                is_told = tail_bases[row] == drafted.base and accepted_of_row[row] >= 0
                if is_told or not drafted.nodes:  # of nothing a verifier need say nothing
                    accepted = max(0, accepted_of_row[row])
                    gain = accepted - depth_along(drafted.alone, committed.tokens(row))
                    source.worth.learn(drafted.expected, gain)
                if is_told and drafted.proposed is not None:
                    told.setdefault(source, []).append((request.number, *drafted.proposed.outcome(committed, row)))
            if allowed[row]:
                rows[request.number] = _Row(row, request, alone.expected(row))
        for source, outcomes in told.items():
            source.guarded.observe(_outcome(outcomes, ended=()))
        return rows.values()

    def _hold(
        self, of_verifier: dict[int, FusedRequest], batch: StepBatch, hidden: HiddenStates | None, tails: native.Tails
    ) -> None:
        """The hidden states of the commits that were taken, until a source is asked."""
        if hidden is None and not self._states.size:
            return
        handles, starts = (
            np.frombuffer(column, "<u4").tolist() for column in (batch.commit.request, batch.commit.start)
        )
        brought = hidden or no_states(len(handles))
        states = zip(brought.start.tolist(), begins(brought.end).tolist(), brought.end.tolist(), strict=True)
        for handle, start, status, (position, first, end) in zip(handles, starts, tails.status, states, strict=True):
            request = of_verifier.get(handle)
            # Of a source that is still being made, or can't be, nobody knows when it takes them.
            if request is None or status != Status.OK or not request.reads_states:
                continue
            if self._sources.of(request.namespace) is None:
                continue
            self._states.put(request.number, start, position, brought.values[first:end])
            if of_verifier.get(handle) is not request:  # it expired meanwhile
                self._states.drop([request.number])

    def _ask(
        self,
        source: AskedSource,
        rows: Sequence[_Row],
        batch: StepBatch,
        tails: native.Tails,
        alone: Trees,
        spent: float,
        answers: _Answers,
    ) -> None:
        """`spent`: seconds that other sources took."""
        if not source.guarded.may_answer(len(rows), source.seconds - spent):
            return
        places = [row.row for row in rows]
        numbers = np.array([row.request.number for row in rows], np.uint64)
        unchanged = np.array([row.request.unchanged for row in rows], np.uint32)
        starts = np.minimum(source.guarded.starts(numbers), unchanged)
        handles = np.frombuffer(batch.commit.request, "<u4")[places]
        epochs = np.frombuffer(batch.commit.epoch, "<u4")[places]
        ends, tokens = self._core.texts(batch.verifier, handles.tobytes(), epochs.tobytes(), starts.tobytes())
        hidden = self._states.of(numbers.tolist()) if rows[0].request.reads_states else None
        texts = Batch(numbers, starts, np.frombuffer(ends, np.uint32), np.frombuffer(tokens, np.int32), hidden)
        budget = np.frombuffer(tails.allowed, "<u2")[places].astype(np.uint32)
        for row in rows:
            row.request.asked = source
        proposals, why = source.guarded.ask(texts, budget, source.seconds - spent)
        if hidden is not None and why.was_asked:
            # Also where it failed: what it fails for must not come again and again.
            self._states.drop(numbers[hidden.end > begins(hidden.end)].tolist())
        if proposals is not None:
            for row in rows:
                nodes = alone.nodes(row.row)
                row.request.unchanged = LONGEST
                row.request.drafted = Drafted(alone.base(row.row), row.expected, nodes, len(nodes))
            answers.add(rows, proposals)

    def _end(self, verifier: int, handle: int) -> None:
        request = self._requests.get(verifier, {}).pop(handle, None)
        if request is not None:
            self._states.drop([request.number])
        if request is not None and request.asked is not None:
            request.asked.guarded.observe(_outcome((), ended=[request.number]))


def _outcome(rows: Sequence[tuple[int, int, int]], ended: Sequence[int]) -> Outcome:
    """`rows`: request, verified and accepted nodes."""
    number, verified, accepted = np.array(rows, np.uint64).reshape(-1, 3).T
    return Outcome(number, verified.astype(np.uint16), accepted.astype(np.uint16), np.array(ended, np.uint64))
