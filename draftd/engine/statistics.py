"""What the engine counted, for metrics and benches."""

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import Any

from draftd import native
from draftd.pacing.pacer import Belief
from draftd.wire import Pacing, Reason, Status

LATENCY_BOUNDS = [50e-6 * 2**i for i in range(12)]  # seconds: 50 us to 0.1 s


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counters since the start, and sizes now. Entry 0 of a `..._per_position` is the first drafted depth."""

    steps: int
    """Verify steps of requests: commits that brought new tokens, but for the first, which comes from prefill."""
    drafts: int
    """Of them, those in which nodes of a tail went through the target; vLLM's num_drafts."""
    covered_steps: int
    """Of them, those that accepted at least one node."""
    draft_tokens: int
    """Nodes of these tails that went through the target; vLLM's num_draft_tokens."""
    accepted_tokens: int
    verified_per_position: list[int]
    accepted_per_position: list[int]
    drafted_per_position: list[int]
    """Nodes delivered, whether verified or not."""
    delivered_tails: int
    """Tails with at least one node."""
    empty_tails: dict[str, int]
    """By Reason."""
    row_errors: dict[str, int]
    """By Status."""
    frame_errors: dict[str, int]
    """By Status."""
    stale_tails: int
    ignored_closes: int
    accompanied_steps: int
    """Steps of verifiers that began while another's drafts were being made."""
    evicted_sessions: int
    forgotten_tokens: int
    """Of histories, because of engine.history_limit or engine.memory_limit."""
    taken_over_tokens: int
    """Of openings, those that an earlier request had indexed."""
    acceptance_of_requests: float
    """Sum of accepted / verified over closed requests; divided by requests_measured, the mean per request."""
    requests_measured: int
    draft_latency_bounds: list[float]
    """Seconds; the last count is of all above."""
    draft_latency_counts: list[int]
    draft_latency_sum: float
    sessions: int
    verifiers: int
    index_bytes: dict[str, int]
    """By kind: own, history, group, corpus, in_flight, kept (for requests that go on from those that ended)."""
    index_tokens: dict[str, int]
    learned_bytes: int
    """Of what namespaces learned from their verifiers."""
    paced_steps: dict[str, int]
    """Steps that asked for drafts, by Pacing."""
    paced_nodes: dict[str, int]
    """Nodes of their drafts."""
    explorations: dict[str, int]
    """Steps of a size whose cost was not known, by verifier; as all below of those that were greeted last."""
    step_cost: dict[tuple[str, int], float]
    """Seconds of a step, by verifier and tokens, as learned."""
    scheduled_nodes: dict[tuple[str, int], int]
    """Nodes of a request's draft now, by verifier and the batch size from which on it holds."""


class Counters:
    """What is counted outside of the core. Every transport's thread counts here."""

    def __init__(self) -> None:
        self.frame_errors: Counter[Status] = Counter()
        self.sync_errors: Counter[Status] = Counter()
        self.left_out: Counter[Reason] = Counter()
        self.paced_steps = [0] * len(Pacing)
        self.paced_nodes = [0] * len(Pacing)
        self.latency_counts = [0] * (len(LATENCY_BOUNDS) + 1)
        self.latency_sum = 0.0
        self._lock = threading.Lock()

    def snapshot(self) -> "Counters":
        """A copy that nobody counts in."""
        copy = Counters()
        with self._lock:
            copy.frame_errors, copy.sync_errors = self.frame_errors.copy(), self.sync_errors.copy()
            copy.latency_counts, copy.latency_sum = self.latency_counts.copy(), self.latency_sum
            copy.left_out = self.left_out.copy()
            copy.paced_steps, copy.paced_nodes = self.paced_steps.copy(), self.paced_nodes.copy()
        return copy

    def frame_refused(self, status: Status) -> None:
        with self._lock:
            self.frame_errors[status] += 1

    def sync_refused(self, status: Status) -> None:
        with self._lock:
            self.sync_errors[status] += 1

    def gave_none(self, drafts: int, why: Reason) -> None:
        with self._lock:
            self.left_out[why] += drafts

    def drafted(self, pacing: Pacing, nodes: int, seconds: float) -> None:
        with self._lock:
            self.paced_steps[pacing] += 1
            self.paced_nodes[pacing] += nodes
            self.latency_counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
            self.latency_sum += seconds


def collect(core: native.Engine, counters: Counters, beliefs: dict[str, Belief]) -> Statistics:
    counted = counters.snapshot()  # first: what is shed was not asked for a moment later
    figures: dict[str, Any] = core.statistics()
    empty = Counter({Reason(code): count for code, count in enumerate(figures["empty_tails"])})
    empty[Reason.NOT_ASKED] -= counted.left_out.total()  # the core was not asked, but the drafter was
    empty += counted.left_out
    rows = counted.sync_errors + Counter({Status(code): count for code, count in enumerate(figures["row_errors"])})
    return Statistics(
        steps=figures["steps"],
        drafts=figures["drafts"],
        covered_steps=figures["covered_steps"],
        draft_tokens=sum(figures["verified_per_position"]),
        accepted_tokens=sum(figures["accepted_per_position"]),
        verified_per_position=figures["verified_per_position"],
        accepted_per_position=figures["accepted_per_position"],
        drafted_per_position=figures["delivered_per_position"],
        delivered_tails=figures["delivered_tails"],
        empty_tails={reason.name: empty[reason] for reason in Reason if Reason.NOT_EMPTY < reason < Reason.LATE},
        row_errors={status.name: rows[status] for status in Status if status != Status.OK},
        frame_errors={status.name: counted.frame_errors[status] for status in Status if status != Status.OK},
        stale_tails=figures["stale_tails"],
        ignored_closes=figures["ignored_closes"],
        accompanied_steps=figures["accompanied_steps"],
        evicted_sessions=figures["evicted_sessions"],
        forgotten_tokens=figures["forgotten_tokens"],
        taken_over_tokens=figures["taken_over_tokens"],
        learned_bytes=figures["learned_bytes"],
        paced_steps={pacing.name.lower(): counted.paced_steps[pacing] for pacing in Pacing},
        paced_nodes={pacing.name.lower(): counted.paced_nodes[pacing] for pacing in Pacing},
        explorations={name: belief.explorations for name, belief in beliefs.items()},
        step_cost={
            (name, tokens): micros / 1e6
            for name, belief in beliefs.items()
            for tokens, micros in belief.learned.items()
        },
        scheduled_nodes={
            (name, slot): nodes for name, belief in beliefs.items() for slot, nodes in belief.slots.items()
        },
        acceptance_of_requests=figures["acceptance_of_requests"],
        requests_measured=figures["requests_measured"],
        draft_latency_bounds=LATENCY_BOUNDS,
        draft_latency_counts=counted.latency_counts,
        draft_latency_sum=counted.latency_sum,
        sessions=figures["sessions"],
        verifiers=figures["verifiers"],
        index_bytes={kind: size["bytes"] for kind, size in figures["index"].items()},
        index_tokens={kind: size["tokens"] for kind, size in figures["index"].items()},
    )
