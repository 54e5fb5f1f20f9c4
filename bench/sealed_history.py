"""What sealing does to drafts: recorded traffic with its history in one live index, and in a head and segments.

    python -m bench.sealed_history [--traces DIR] [--budget 16] [--seal-tokens 10000 ...]

Every file of the folder is replayed in process, shared outputs, one request at a time; whenever the live head has so
many tokens it is sealed, and segments merge as a server's do. Tokens per verify step don't depend on the machine. Ends
with status 1 if any workload loses more than 1 %.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.text import add_traces_option
from draftd.client import Namespace
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.corpora.merging import plan_merge
from draftd.demo.sample import trace_files
from draftd.engine import Engine
from draftd.native import Segment, SegmentBuilder
from draftd.observe import terminal
from draftd.replay.budgets import FixedBudget
from draftd.replay.client_drafter import ClientDrafter
from draftd.replay.result import ReplayResult, geometric_mean
from draftd.replay.runner import replay
from draftd.replay.traces import RecordedRequest, read_trace, workload_name

LEAST_SHARE = 0.99  # of the tokens per step with one live index


@dataclass
class Sealer:
    """Seals the history of an engine's only namespace, between requests."""

    client: LocalClient
    engine: Engine
    namespace: Namespace
    seal_tokens: int
    segments: list[Segment] = field(default_factory=list)

    def between(self, requests: Iterator[RecordedRequest]) -> Iterator[RecordedRequest]:
        for request in requests:
            yield request
            self.client.open("all is indexed", [0], share="none", wait=True).close()
            if self.engine.histories()[0].head_tokens >= self.seal_tokens:
                self.seal()

    def seal(self) -> None:
        frozen = self.engine.freeze_history(self.namespace, "")
        assert frozen is not None
        builder = SegmentBuilder("")
        builder.add(
            np.asarray(frozen.token_ids, np.int32),
            np.asarray(frozen.document_ends, np.int64),
            frozen.labels,
            np.asarray(frozen.times, np.int64),
        )
        self.segments.append(written(builder))
        if run := plan_merge([segment.tokens for segment in self.segments]):
            merged = SegmentBuilder("")
            for segment in self.segments[run]:
                merged.add_segment(segment, np.ones(segment.documents, np.bool_))
            self.segments[run] = [written(merged)]
        self.engine.publish_history(self.namespace, "", self.segments, drop_frozen=True)


def written(builder: SegmentBuilder) -> Segment:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segment"
        builder.write(path)
        return Segment.open(path)  # mapped: the file may go


def replayed(path: Path, budget: int, seal_tokens: int | None) -> ReplayResult:
    """`seal_tokens`: None never seals."""
    engine = Engine(EngineSettings())
    namespace = Namespace(model=workload_name(path))
    client = LocalClient(engine, namespace, verifier="bench", deadline=30.0)
    requests = read_trace(path)
    if seal_tokens is not None:
        requests = Sealer(client, engine, namespace, seal_tokens).between(requests)
    result = ReplayResult(workload_name(path))
    try:
        replay(requests, ClientDrafter(client, shape="tree", share="outputs"), FixedBudget(budget), result)
    finally:
        engine.close()
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_traces_option(parser)
    parser.add_argument("--budget", type=int, default=16)
    parser.add_argument("--seal-tokens", type=int, nargs="+", default=[10_000])
    options = parser.parse_args(arguments)

    console = terminal.console()
    table = Table("workload", title="Tokens per verify step", title_justify="left")
    for column in ("live", *(f"sealed every {tokens:,} tokens" for tokens in options.seal_tokens)):
        table.add_column(column, justify="right")
    shares: dict[int, list[float]] = {tokens: [] for tokens in options.seal_tokens}
    for path in trace_files(options.traces):
        live = replayed(path, options.budget, None).emitted_per_step
        cells = []
        for tokens, of_workloads in shares.items():
            sealed = replayed(path, options.budget, tokens).emitted_per_step
            of_workloads.append(sealed / live)
            cells.append(f"{sealed:.3f} = {sealed / live:.4f}")
        table.add_row(workload_name(path), f"{live:.3f}", *cells)
    table.add_section()
    table.add_row("geometric mean", "", *(f"{geometric_mean(of_workloads):.4f}" for of_workloads in shares.values()))
    console.print(table)
    worst = min(min(of_workloads) for of_workloads in shares.values())
    if worst < LEAST_SHARE:
        console.print(f"worst share of the live figure: {worst:.4f}, at least {LEAST_SHARE} wanted", style="red")
    sys.exit(1 if worst < LEAST_SHARE else 0)


if __name__ == "__main__":
    main()
