"""`draftd demo`: a server, a corpus, concurrent verifier streams, and what came of it."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from draftd.demo.display import LiveProgress, comparison_table
from draftd.demo.interruption import interruptible
from draftd.demo.sample import SAMPLE_CORPUS, trace_files
from draftd.demo.server import Server, running_server
from draftd.demo.streams import TENANT, Streams, Workload, share_out
from draftd.replay.budgets import FixedBudget
from draftd.replay.result import ReplayResult
from draftd.replay.runner import replay
from draftd.replay.source_drafter import drafter_named
from draftd.replay.table import report_console

NODES = 16
STREAMS = 3
CORPUS_READERS = ("math_gsm8k_multi", "math_tool_tora")
NEWCOMERS_WORKLOAD = "agent_swe"
CHECK_SECONDS = 0.5  # how soon a server that died is noticed

# How much of each recording is replayed, in output tokens; always whole requests from its start.
FULL_TOKENS = 20_000
QUICK_TOKENS = 2_000


def run(*, quick: bool = False) -> None:
    """Runs the demo and prints its figures. Raises DemoError or ReplayError, whose text is one line for a person; in
    any case nothing is left running."""
    console = report_console()
    workloads = [Workload(path, QUICK_TOKENS if quick else FULL_TOKENS) for path in trace_files()]
    with interruptible(), running_server() as server:
        console.print(f"draftd serves verifiers at {server.endpoint}, people at {server.http}")
        _post_corpus(server, console)
        drafted = _drive(server, workloads, console)
        looked_up = [_look_up(workload) for workload in workloads]
    console.print(comparison_table(drafted, looked_up))
    console.print(_in_one_line(drafted, looked_up), style="bold")


def _post_corpus(server: Server, console: Console) -> None:
    with np.load(SAMPLE_CORPUS) as corpus:
        documents = np.split(corpus["token_ids"], corpus["doc_offsets"][1:-1])
    for model in CORPUS_READERS:
        tokens = server.post_corpus(TENANT, model, SAMPLE_CORPUS.stem, documents)
        console.print(f"corpus {SAMPLE_CORPUS.stem} posted for {model}: {tokens:,} tokens")


def _drive(server: Server, workloads: Sequence[Workload], console: Console) -> list[ReplayResult]:
    """The results, in the order of the workloads."""
    totals = {workload.name: workload.emitted() for workload in workloads}
    console.print(
        f"{STREAMS} verifier streams replay {sum(totals.values()):,} recorded tokens,"
        f" at most {NODES} drafted nodes a step"
    )
    results: dict[str, ReplayResult] = {}
    progress = LiveProgress(totals, console)
    with Streams(server.endpoint, share_out(workloads, STREAMS), NODES) as streams, progress.bars:
        for message in streams.messages(CHECK_SECONDS):
            server.check()
            if message is not None:
                progress.show(message.workload, message.steps, message.emitted)
                if message.result is not None:
                    results[message.workload] = message.result
    return [results[workload.name] for workload in workloads]


def _look_up(workload: Workload) -> ReplayResult:
    result = ReplayResult(workload.name)
    with drafter_named("ngram") as drafter:
        replay(workload.requests(), drafter, FixedBudget(NODES), result)
    return result


def _in_one_line(drafted: Sequence[ReplayResult], looked_up: Sequence[ReplayResult]) -> str:
    ours, theirs = (
        next(result.emitted_per_step for result in results if result.workload == NEWCOMERS_WORKLOAD)
        for results in (drafted, looked_up)
    )
    return (
        f"On coding-agent traffic each forward pass of the target now yields {ours:.1f} tokens"
        f" (n-gram lookup: {theirs:.1f}; without drafts: 1)."
    )
