"""What bench/engines.py makes of its runs: the tables, and what they should show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.engine_side import Outcome, Step

NONE, LONG_NGRAM, NGRAM, SUFFIX, DRAFTD = PROPOSERS = ("none", "ngram", "ngram 2-5", "suffix", "draftd")
# Least tokens per step of draftd, as a multiple of another's; of vLLM's n-gram lookup as it comes, with n-grams of 5.
WANTED = {SUFFIX: 1.0, LONG_NGRAM: 1.3}
ECHOES_LIMIT = 2.5  # what draftd's proposer may take beyond the core, in echoes
BATCH = 8  # requests at once, with which that is measured
ALL = "all"

Table = list[list[str]]  # the first line are headings


@dataclass(frozen=True)
class Run:
    """One engine with one proposer, `at_once` requests at once. `workloads` names that of each request."""

    proposer: str
    at_once: int
    workloads: Sequence[str]
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.proposer}, {self.at_once} at once"

    def emitted(self, workload: str = ALL) -> list[int]:
        """Tokens of each step of each request, but of that with its first token."""
        of_requests = zip(self.workloads, self.outcome.emitted, strict=True)
        return [tokens for name, of_steps in of_requests if workload in (name, ALL) for tokens in of_steps]

    def tokens_per_step(self, workload: str = ALL) -> float:
        return float(np.mean(self.emitted(workload)))

    def coverage(self) -> float:
        """Share of the steps in which a drafted token was accepted."""
        return float(np.mean(np.greater(self.emitted(), 1)))

    def micros(self, what: str) -> list[float]:
        """Of the steps of a whole batch in which no request began: one that begins brings its prompt along."""
        return [step.micros[what] for step in self.outcome.steps if self._is_plain(step) and what in step.micros]

    def _is_plain(self, step: Step) -> bool:
        return step.rows == self.at_once and not step.openings

    def echoes(self) -> float | None:
        """What draftd's proposer takes beyond the core, in echoes; of the medians. None: no step was timed."""
        timed = [self.micros(what) for what in ("proposer", "core", "echo")]
        if not all(timed):
            return None
        proposer, core, echo = map(np.median, timed)
        return float((proposer - core) / echo)


@dataclass(frozen=True)
class Comparison:
    """Runs with the same prompts; the first is of the engine alone."""

    runs: Sequence[Run]

    def find(self, proposer: str, at_once: int) -> Run | None:
        return next((run for run in self.runs if (run.proposer, run.at_once) == (proposer, at_once)), None)

    def differing(self, run: Run) -> list[int]:
        """Numbers of the requests that got other tokens than from the engine alone."""
        pairs = zip(run.outcome.outputs, self.runs[0].outcome.outputs, strict=True)
        return [number for number, (drafted, right) in enumerate(pairs) if drafted != right]

    def ratio(self, other: str, workload: str, at_once: int) -> float | None:
        """draftd's tokens per step, as a multiple of another's. None: one of them did not run."""
        ours, theirs = self.find(DRAFTD, at_once), self.find(other, at_once)
        return ours.tokens_per_step(workload) / theirs.tokens_per_step(workload) if ours and theirs else None

    def wrong_outputs(self) -> list[str]:
        return [
            f"{run}: request {number} got other tokens than without drafts"
            for run in self.runs
            for number in self.differing(run)
        ]

    def missed_targets(self) -> list[str]:
        missed = []
        for workload, at_once in self._parts():
            for other, least in WANTED.items():
                ratio = self.ratio(other, workload, at_once)
                if ratio is not None and ratio < least:
                    missed.append(
                        f"{workload}, {at_once} at once: {ratio:.3f}x the tokens per step of {other}, {least}x wanted"
                    )
        batch = self.find(DRAFTD, BATCH)
        echoes = batch.echoes() if batch else None
        if echoes is not None and echoes > ECHOES_LIMIT:
            missed.append(f"proposer beyond the core: {echoes:.2f} echoes, at most {ECHOES_LIMIT} wanted")
        return missed

    def _parts(self) -> Iterator[tuple[str, int]]:
        """Workload, and requests at once."""
        workloads = [*dict.fromkeys(self.runs[0].workloads)]
        for at_once in sorted({run.at_once for run in self.runs[1:]}):
            yield from ((workload, at_once) for workload in workloads)
            if len(workloads) > 1:
                yield ALL, at_once

    def tokens_table(self) -> Table:
        """Tokens per step of each proposer, and draftd's as multiples of the others'."""
        ran = {run.proposer for run in self.runs}
        proposers = [proposer for proposer in PROPOSERS[1:] if proposer in ran]
        others = [proposer for proposer in proposers if proposer != DRAFTD and DRAFTD in ran]
        lines = [["prompts", "at once", *proposers, *(f"draftd / {other}" for other in others)]]
        for workload, at_once in self._parts():
            runs = [self.find(proposer, at_once) for proposer in proposers]
            figures = [f"{run.tokens_per_step(workload):.3f}" for run in runs if run]
            ratios = [self.ratio(other, workload, at_once) for other in others]
            lines.append([workload, str(at_once), *figures, *(f"{ratio:.2f}x" for ratio in ratios if ratio)])
        return lines

    def steps_table(self) -> Table:
        """How each proposer works, with all prompts."""
        return [STEPS_HEADING, *map(self._steps_line, self.runs)]

    def _steps_line(self, run: Run) -> list[str]:
        steps, outcome, micros = len(run.emitted()), run.outcome, run.micros("proposer")
        differing = len(self.differing(run))
        return [
            run.proposer,
            str(run.at_once),
            f"{differing} differ" if differing else "identical",
            f"{steps:,}",
            f"{run.tokens_per_step():.3f}",
            f"{run.coverage():.1%}",
            f"{outcome.drafted / steps:.2f}",
            f"{outcome.accepted / steps:.2f}",
            *([f"{np.percentile(micros, percent):,.0f}" for percent in (50, 99)] if micros else ["", ""]),
        ]

    def round_trip(self) -> str:
        """draftd's proposer beside the core and the echo, in words; empty if that was not measured."""
        run = self.find(DRAFTD, BATCH)
        if run is None or (echoes := run.echoes()) is None:
            return ""
        proposer, core, echo = (np.median(run.micros(what)) for what in ("proposer", "core", "echo"))
        return (
            f"draftd, {BATCH} at once, p50 of {len(run.micros('proposer'))} steps: proposer {proposer:.0f} µs, of it"
            f" {core:.0f} µs in the core; a raw echo {echo:.0f} µs. Beyond the core {echoes:.2f} echoes, at most"
            f" {ECHOES_LIMIT} wanted. {run.outcome.unanswered} steps were not answered in time."
        )


STEPS_HEADING = [
    "proposer",
    "at once",
    "output",
    "steps",
    "tokens per step",
    "coverage",
    "drafted per step",
    "accepted per step",
    "proposer p50, µs",
    "p99, µs",
]
