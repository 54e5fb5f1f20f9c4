"""The figures of draft quality: what each is, what it should be at least, and what is aimed at.

Each function wants its replays, works out its figures and gives rows. What can't be measured with the given traffic has
a row that says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from bench.counts import compare_with_counts
from bench.peers import peers
from bench.replays import Replay, Replays, command
from draftd.replay import ReplayOptions, ReplayResult
from draftd.replay.calibration import Calibration
from draftd.replay.result import geometric_mean
from draftd.replay.traces import workload_name

SIDE_BY_SIDE = 16  # requests, for in-flight sharing
FIRST_REQUESTS = 50  # for what priors are worth
KEPT_TOKENS = 0.97  # by the threshold at which accepted per drafted node is stated
UNRELATED_CORPORA = 4


@dataclass(frozen=True)
class Row:
    """One line of the table. `met` is None where there is no target, or where it was not measured in full."""

    figure: str
    measured: str
    least: str = "report"
    aim: str = ""
    met: bool | None = None
    command: str = ""


@dataclass(frozen=True)
class Traffic:
    """What is replayed. `folder` is for corpora that are made of others. `priors` are by workload; empty: without."""

    traces: Sequence[Path]
    corpora: dict[str, Path]  # by name
    folder: Path
    requests: int | None = None  # of each file; None: all
    priors: Mapping[str, Path] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether these are all recordings that peers were measured with."""
        return self.requests is None and {*map(workload_name, self.traces)} >= {*peers().emitted}

    def replays(self, *workloads: str, corpora: Iterable[Path] = (), **options: Any) -> list[Replay]:
        """Of these workloads, as far as they are there; without names of all."""
        wanted = ReplayOptions(**{"requests": self.requests, **options})
        chosen = (trace for trace in self.traces if not workloads or workload_name(trace) in workloads)
        of_workload = self.priors.get
        return [Replay(it, wanted, tuple(corpora), priors=of_workload(workload_name(it))) for it in chosen]

    def unrelated_corpora(self) -> list[Path]:
        """Parts of the code corpus, as files of their own; none if it is not there."""
        if "pystdlib" not in self.corpora:
            return []
        files = [self.folder / f"unrelated_{part}.npz" for part in range(UNRELATED_CORPORA)]
        if not files[0].exists():
            _write_parts(self.corpora["pystdlib"], files)
        return files


def _write_parts(corpus: Path, files: Sequence[Path]) -> None:
    with np.load(corpus) as columns:
        tokens, offsets = columns["token_ids"], columns["doc_offsets"]
    bounds = np.linspace(0, len(offsets) - 1, len(files) + 1).astype(int)
    for file, (first, last) in zip(files, pairwise(bounds), strict=True):
        of_part = offsets[first : last + 1]
        np.savez(file, token_ids=tokens[of_part[0] : of_part[-1]], doc_offsets=of_part - of_part[0])


def mean_tokens(results: Iterable[ReplayResult]) -> float:
    return geometric_mean(result.emitted_per_step for result in results)


def mean_nodes(results: Iterable[ReplayResult]) -> float:
    return fmean(result.nodes_per_step for result in results)


def geometric_means(replays: Replays, traffic: Traffic) -> list[Row]:
    """Tokens per step over all workloads, at every budget."""
    targets: list[tuple[dict[str, int], float, float]] = [
        ({"budget": 16}, 2.60, 2.70),
        ({"budget": 8}, 2.33, 2.42),
        ({"mean_budget": 16}, 2.63, 2.75),
        ({"mean_budget": 8}, 2.38, 2.48),
    ]
    for budget, _, _ in targets:
        replays.want(traffic.replays(**budget))
    rows = []
    for budget, least, aim in targets:
        wanted = traffic.replays(**budget)
        results = replays.of(wanted)
        mean = mean_tokens(results)
        name, nodes = next(iter(budget.items()))
        rows.append(
            Row(
                f"geometric mean of tokens per step, {name.replace('_', ' ')} {nodes}, {len(results)} workloads",
                f"{mean:.3f}, {mean_nodes(results):.2f} nodes a step",
                f"{least:.2f}",
                f"{aim:.2f}",
                mean >= least if traffic.is_full else None,
                command(wanted),
            )
        )
    return rows


def beside_peers(replays: Replays, traffic: Traffic) -> list[Row]:
    """The workload that is nearest to its best peer, or furthest behind it."""
    rows = []
    for budget in (16, 8):
        wanted = traffic.replays(budget=budget)
        shares = {
            result.workload: result.emitted_per_step / peers().best(result.workload, budget)[1]
            for result in replays.of(wanted)
            if peers().emitted.get(result.workload) == result.emitted  # peers were measured with whole recordings
        }
        worst = min(shares, key=lambda workload: shares[workload], default="")
        rows.append(
            Row(
                f"every workload against its best peer, budget {budget}",
                f"{shares[worst]:.3f}x ({worst})" if worst else "no whole recording",
                "1.00x",
                "1.10x",
                shares[worst] >= 1.0 if worst else None,
                command(wanted),
            )
        )
    return rows


def in_flight(replays: Replays, traffic: Traffic) -> list[Row]:
    """What requests at once gain from reading each other before they end."""
    rows = []
    for workload in ("rl_code_humaneval", "rl_game24"):
        figure = f"{workload}, {SIDE_BY_SIDE} at once: in-flight sharing against finished only"
        sharing = traffic.replays(workload, concurrency=SIDE_BY_SIDE)
        apart = [replace(replay, in_flight=False) for replay in sharing]
        if not sharing:
            rows.append(Row(figure, "not measured: the recording is not there", "1.02x", "1.05x"))
            continue
        (with_others,), (finished_only,) = replays.of(sharing), replays.of(apart)
        ratio = with_others.emitted_per_step / finished_only.emitted_per_step
        rows.append(
            Row(
                figure,
                f"{ratio:.3f}x ({with_others.emitted_per_step:.3f}), {with_others.nodes_per_step:.2f} nodes a step",
                "1.02x",
                "1.05x",
                ratio >= 1.02 if traffic.requests is None else None,
                command(sharing),
            )
        )
    return rows


def with_corpora(replays: Replays, traffic: Traffic) -> list[Row]:
    """Tokens per step with a corpus of the domain, and with unrelated ones, against none."""
    own = [
        ("math_gsm8k_multi", [traffic.corpora.get("gsm8k_train")]),
        ("rl_code_humaneval", [traffic.corpora.get("pystdlib")]),
    ]
    rows = []
    for workload, corpora in own:
        figure = f"{workload} with {', '.join(path.stem for path in corpora if path) or 'a corpus of its domain'}"
        rows.append(
            _against_none(replays, traffic, figure, workload, [path for path in corpora if path], 1.00, "1.06x")
        )
    unrelated = traffic.unrelated_corpora()
    figure = f"math_gsm8k_multi with {UNRELATED_CORPORA} unrelated corpora"
    rows.append(_against_none(replays, traffic, figure, "math_gsm8k_multi", unrelated, 0.99, ""))
    return rows


def _against_none(
    replays: Replays, traffic: Traffic, figure: str, workload: str, corpora: Sequence[Path], least: float, aim: str
) -> Row:
    alone, beside = traffic.replays(workload, budget=16), traffic.replays(workload, corpora=corpora, budget=16)
    if not corpora or not alone:
        return Row(figure, "not measured: recording or corpus is not there", f"{least:.2f}x", aim)
    ((without,), (with_them,)) = replays.of(alone), replays.of(beside)
    ratio = with_them.emitted_per_step / without.emitted_per_step
    measured = f"{ratio:.3f}x ({with_them.emitted_per_step:.3f}), {with_them.nodes_per_step:.2f} nodes a step"
    met = ratio >= least if traffic.requests is None else None
    return Row(figure, measured, f"{least:.2f}x", aim, met, command(beside))


def calibration(replays: Replays, traffic: Traffic) -> list[Row]:
    """How far survival can be trusted, beside counts taken at their word."""
    wanted = traffic.replays(budget=16)
    errors = {result.workload: result.calibration.error for result in replays.of(wanted)}
    worst = max(errors, key=lambda workload: errors[workload])
    mean, met = fmean(errors.values()), None
    if traffic.is_full:
        met = mean <= 0.015 and errors[worst] <= 0.05
    rows = [
        Row(
            "calibration error of survival, mean; worst",
            f"{mean:.4f}; {errors[worst]:.4f} ({worst})",
            "<= 0.015; 0.05",
            "0.006; 0.02",
            met,
            command(wanted),
        )
    ]
    pairs = replays.of(wanted, compare_with_counts)
    brier = [fmean(part.brier_score for part in parts) for parts in zip(*pairs, strict=True)]
    auc = [fmean(part.auc for part in parts if part.auc is not None) for parts in zip(*pairs, strict=True)]
    how = f"{command(wanted)}  # and count / total for the nodes of every 32nd step"
    for name, (ours, counts), better in (("Brier score", brier, brier[0] < brier[1]), ("AUC", auc, auc[0] > auc[1])):
        measured = f"{ours:.4f} against {counts:.4f}"
        rows.append(Row(f"{name} against count / total, mean", measured, "better", "", better, how))
    return rows


def at_threshold(replays: Replays, traffic: Traffic) -> list[Row]:
    """Accepted per drafted node where a threshold keeps nearly all tokens."""
    everything = replays.of(traffic.replays(budget=16))
    steps, emitted = sum(result.steps for result in everything), sum(result.emitted for result in everything)
    kept = (KEPT_TOKENS * emitted - steps) / (emitted - steps)  # of accepted tokens: each step has a bonus token
    threshold = round(Calibration.pooled(it.calibration for it in everything).threshold_keeping(kept), 4)
    wanted = traffic.replays(budget=16, min_survival=threshold)
    results = replays.of(wanted)
    figures = peers().accepted_per_node["16"]["SGLang 0.5.23 BFS"].values()
    return [
        Row(
            f"accepted per drafted node, budget 16, survival {threshold:g} or more, mean",
            f"{fmean(result.accepted_per_node for result in results):.1%} with {mean_tokens(results):.3f} tokens"
            f" and {mean_nodes(results):.2f} nodes a step, {mean_tokens(results) / mean_tokens(everything):.1%} of the"
            f" tokens without; SGLang, 16: {fmean(figures):.1%}",
            command=command(wanted),
        )
    ]


def priors_on_new_traffic(replays: Replays, traffic: Traffic) -> list[Row]:
    """What priors are worth to the first requests of a workload that they know nothing of, nor of its source."""
    figure = f"priors that know nothing of the workload's source, its first {FIRST_REQUESTS} requests against no priors"
    if not traffic.priors:
        return [Row(figure, "not measured: no priors were given", "1.005x", "1.015x")]
    requests = min(FIRST_REQUESTS, traffic.requests or FIRST_REQUESTS)
    informed = traffic.replays(budget=16, requests=requests)
    ignorant = [replace(replay, priors=None) for replay in informed]
    replays.want(informed)
    pairs = zip(replays.of(ignorant), replays.of(informed), strict=True)
    ratios = [after.emitted_per_step / before.emitted_per_step for before, after in pairs]
    mean = fmean(ratios)
    met = mean >= 1.005 if traffic.is_full else None
    measured = f"{mean:.4f}x, mean of {len(ratios)} workloads; {min(ratios):.3f}x to {max(ratios):.3f}x"
    return [Row(figure, measured, "1.005x", "1.015x", met, command(informed))]
