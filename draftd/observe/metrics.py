"""The engine's figures as Prometheus metrics. The tables are the documentation of every name.

The first four are vLLM's counters of speculative decoding with draftd's prefix, and mean the same, so that one
dashboard shows either. Only nodes that went through the target count: an engine may clamp, pad or cut a draft, and
what it never verified says nothing about acceptance.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector


class Statistics(Protocol):
    """What is read here of the engine's statistics, besides the attributes that the tables name."""

    @property
    def draft_latency_bounds(self) -> Sequence[float]: ...
    @property
    def draft_latency_counts(self) -> Sequence[int]: ...
    @property
    def draft_latency_sum(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def covered_steps(self) -> int: ...
    @property
    def acceptance_of_requests(self) -> float: ...
    @property
    def requests_measured(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric: its name, what it says, the attribute of the statistics, and the labels of its parts, if any."""

    name: str
    help: str
    attribute: str
    label: str = ""  # several are joined by ", "; the attribute's keys are then tuples


# Prometheus shows a counter's name with "_total" behind it.
COUNTERS = (
    Figure("draftd_spec_decode_num_drafts", "Drafts that a verify step used", "drafts"),
    Figure("draftd_spec_decode_num_draft_tokens", "Drafted tokens that went through the target", "draft_tokens"),
    Figure("draftd_spec_decode_num_accepted_tokens", "Drafted tokens accepted", "accepted_tokens"),
    Figure(
        "draftd_spec_decode_num_accepted_tokens_per_pos",
        "Drafted tokens accepted, by depth; 0 is the first drafted token",
        "accepted_per_position",
        "position",
    ),
    Figure("draftd_drafted_tokens_per_pos", "Tokens delivered in tails, by depth", "drafted_per_position", "position"),
    Figure(
        "draftd_verified_tokens_per_pos",
        "Drafted tokens that went through the target, by depth",
        "verified_per_position",
        "position",
    ),
    Figure("draftd_verify_steps", "Verify steps of requests: commits that brought new tokens", "steps"),
    Figure("draftd_covered_steps", "Verify steps that accepted at least one drafted token", "covered_steps"),
    Figure("draftd_tails", "Tails with at least one node", "delivered_tails"),
    Figure("draftd_empty_tails", "Tails without a node, by reason", "empty_tails", "reason"),
    Figure("draftd_row_errors", "Rows that were refused, by status", "row_errors", "status"),
    Figure("draftd_frame_errors", "Messages that could not be taken as a whole, by status", "frame_errors", "status"),
    Figure("draftd_stale_tails", "Commits that used another tail than the last two sent", "stale_tails"),
    Figure("draftd_ignored_closes", "Closes of a request that is not open", "ignored_closes"),
    Figure("draftd_evicted_sessions", "Requests dropped for silence or for memory", "evicted_sessions"),
    Figure("draftd_accompanied_steps", "Steps begun while another verifier's drafts were made", "accompanied_steps"),
    Figure("draftd_paced_steps", "Steps that asked for drafts, by who decides how many nodes", "paced_steps", "pacing"),
    Figure("draftd_paced_nodes", "Nodes of these steps together", "paced_nodes", "pacing"),
    Figure("draftd_explorations", "Steps of a width whose cost was not known, by verifier", "explorations", "verifier"),
    Figure("draftd_forgotten_tokens", "Tokens of histories dropped from memory to keep a limit", "forgotten_tokens"),
    Figure("draftd_taken_over_tokens", "Tokens of openings that an earlier request had indexed", "taken_over_tokens"),
)
GAUGES = (
    Figure("draftd_sessions", "Open requests", "sessions"),
    Figure("draftd_verifiers", "Verifiers known", "verifiers"),
    Figure("draftd_index_bytes", "Bytes of the indexes, by kind", "index_bytes", "kind"),
    Figure("draftd_index_tokens", "Tokens in the indexes, by kind", "index_tokens", "kind"),
    Figure("draftd_learned_bytes", "Bytes of what namespaces learned from their verifiers", "learned_bytes"),
    Figure(
        "draftd_step_cost_seconds",
        "What a step is believed to take, by its tokens, as learned from the verifier's steps",
        "step_cost",
        "verifier, tokens",
    ),
    Figure(
        "draftd_scheduled_nodes",
        "Nodes of a request's draft by the schedule, by the batch size from which on it holds",
        "scheduled_nodes",
        "verifier, batch",
    ),
)
COVERAGE = Figure(
    "draftd_coverage", "Covered over all verify steps since the start; 0 before the first", "covered_steps"
)
LATENCY = Figure(
    "draftd_draft_seconds", "Time of one step that asks for drafts, in the drafter's core", "draft_latency_counts"
)
# The mean over requests; accepted over verified tokens above is the mean over tokens, where long requests weigh more.
ACCEPTANCE = Figure(
    "draftd_request_acceptance", "Accepted over verified tokens of each closed request", "acceptance_of_requests"
)


Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


class EngineCollector(Collector):
    """Asks the engine when Prometheus asks."""

    def __init__(self, statistics: Callable[[], Statistics]) -> None:
        self._statistics = statistics

    def collect(self) -> Iterable[Metric]:
        now = self._statistics()
        for figure in COUNTERS:
            yield _filled(CounterMetricFamily(figure.name, figure.help, labels=_labels(figure)), figure, now)
        for figure in GAUGES:
            yield _filled(GaugeMetricFamily(figure.name, figure.help, labels=_labels(figure)), figure, now)
        yield GaugeMetricFamily(COVERAGE.name, COVERAGE.help, now.covered_steps / max(now.steps, 1))
        yield _latency(now)
        yield SummaryMetricFamily(ACCEPTANCE.name, ACCEPTANCE.help, now.requests_measured, now.acceptance_of_requests)

    def describe(self) -> Iterable[Metric]:
        return []  # otherwise registering would ask the engine


def _labels(figure: Figure) -> list[str]:
    return figure.label.split(", ") if figure.label else []


def _filled(family: Family, figure: Figure, now: Statistics) -> Family:
    value = getattr(now, figure.attribute)
    if not figure.label:
        family.add_metric([], value)
        return family
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for part, count in parts:
        family.add_metric([str(label) for label in (part if isinstance(part, tuple) else (part,))], count)
    return family


def _latency(now: Statistics) -> HistogramMetricFamily:
    bounds = [*map(str, now.draft_latency_bounds), "+Inf"]
    running = accumulate(now.draft_latency_counts)
    family = HistogramMetricFamily(LATENCY.name, LATENCY.help)
    family.add_metric([], list(zip(bounds, running, strict=True)), now.draft_latency_sum)
    return family
