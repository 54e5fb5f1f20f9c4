"""A step of draftd, out of process, beside vLLM's n-gram lookup inside the engine's own, in the same run.

    python -m bench.vllm_ngram [--traces DIR] [--requests 64] [--context 32768] [--steps 200] [--json FILE]

Needs what `make engines` sets up. 64 requests with 32k tokens of recorded text each: vLLM's proposer, compiled before
and with the threads that it gives itself, looks through all of them; draftd's step is a round trip of the real client
to a real server, which commits what was emitted and answers with chains of the same length. The two take turns step by
step, and are told the same tokens. Ends with status 1 if draftd takes longer.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.progress import track
from rich.table import Table

from bench.arctic import windows
from bench.engines import CHAIN, ENGINES_PYTHON
from bench.text import TokenArray, add_traces_option, trace_documents
from draftd.client import Client, Namespace
from draftd.demo.server import running_server
from draftd.observe import terminal
from draftd.replay.verification import verify

REQUESTS, CONTEXT, STEPS = 64, 32_768, 200
WARM_UP = 10  # steps that don't count
DEADLINE = 60.0
SIDE = Path(__file__).with_name("vllm_ngram_side.py")


@dataclass
class Times:
    """Of steps, in microseconds; and what was drafted in them."""

    draftd: list[float] = field(default_factory=list)  # the round trip
    core: list[float] = field(default_factory=list)  # of it, in the core
    ngram: list[float] = field(default_factory=list)
    draftd_nodes: list[int] = field(default_factory=list)
    ngram_nodes: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many steps of draftd fit into one of the n-gram lookup, of the medians."""
        return float(np.median(self.ngram) / np.median(self.draftd))


class NgramSide:
    """vLLM's proposer, in a process of its own environment."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit("vLLM's n-gram proposer did not start: see above")

    def step(self, emitted: Sequence[int]) -> tuple[float, int]:
        """Microseconds of the proposal, and the tokens proposed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*emitted, file=self._process.stdin, flush=True)
        micros, tokens = self._process.stdout.readline().split()
        return float(micros), int(tokens)


@contextmanager
def ngram_side(python: Path, text: TokenArray, context: int) -> Iterator[NgramSide]:
    with tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder:
        file = Path(folder, "text.npz")
        np.savez(file, text=text)
        words = [str(python), str(SIDE), str(file), str(context), str(CHAIN)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield NgramSide(process)  # whose input ends with the block, and it with that


class Batch:
    """Requests at draftd, whose text goes on as recorded."""

    def __init__(self, client: Client, text: TokenArray, context: int) -> None:
        self._client = client
        self._text = [row.tolist() for row in text]
        self._requests = [
            client.open(f"{number}", row[:context], shape="chain", share="none", wait=True)
            for number, row in enumerate(text)
        ]
        self._known = [context] * len(text)
        self.emitted = [1] * len(text)  # tokens that each commits with the next step

    def step(self) -> tuple[float, int]:
        """Microseconds of a step's round trip, and the nodes drafted."""
        commits = {}
        for row, request in enumerate(self._requests):
            known = self._known[row] + self.emitted[row]
            commits[request] = self._text[row][self._known[row] : known]
            self._known[row] = known
        started = time.perf_counter_ns()
        drafts = self._client.step(commits, max_nodes=CHAIN)
        micros = (time.perf_counter_ns() - started) / 1000
        outcomes = [
            verify(draft.tokens.tolist(), draft.parents.tolist(), self._text[row], self._known[row])
            for row, draft in enumerate(drafts.values())
        ]
        self.emitted = [outcome.emitted for outcome in outcomes]
        return micros, sum(outcome.nodes for outcome in outcomes)


def measure(documents: Sequence[TokenArray], python: Path, requests: int, context: int, steps: int) -> Times:
    text = windows(documents, requests, context + (WARM_UP + steps + 1) * (CHAIN + 1))
    times = Times()
    with (
        running_server() as server,
        ngram_side(python, text, context) as ngram,
        Client(server.endpoint, Namespace(), verifier="bench", deadline=DEADLINE) as client,
    ):
        batch = Batch(client, text, context)
        for step in track(range(WARM_UP + steps), "stepping", console=terminal.console(stderr=True)):
            emitted = batch.emitted
            draftd_micros, draftd_nodes = batch.step()
            ngram_micros, ngram_nodes = ngram.step(emitted)
            if step >= WARM_UP:
                times.draftd.append(draftd_micros)
                times.core.append(client.last_core_micros)
                times.ngram.append(ngram_micros)
                times.draftd_nodes.append(draftd_nodes)
                times.ngram_nodes.append(ngram_nodes)
    return times


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=ENGINES_PYTHON, help="of the engines' environment")
    add_traces_option(parser)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--context", type=int, default=CONTEXT, help="tokens of each request's prompt")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    if not options.python.exists():
        parser.error(f"{options.python} is not there; make it with `make engines`")

    documents = trace_documents(options.traces)
    times = measure(documents, options.python, options.requests, options.context, options.steps)
    batch = f"{options.requests} requests of {options.context:,} tokens, at most {CHAIN} drafted for each"
    table = Table(title=f"Microseconds of a step, {batch}", title_justify="left")
    for heading in ("", "p50", "p99", "drafted a step"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, micros, nodes in (
        ("draftd, round trip", times.draftd, times.draftd_nodes),
        ("draftd, of it in the core", times.core, times.draftd_nodes),
        ("vLLM's n-gram lookup, in process", times.ngram, times.ngram_nodes),
    ):
        table.add_row(name, *(f"{np.percentile(micros, percent):.0f}" for percent in (50, 99)), f"{np.mean(nodes):.0f}")
    console = terminal.console(width=110)
    console.print(table)
    is_missed = times.ratio <= 1.0 and (options.requests, options.context) == (REQUESTS, CONTEXT)
    verdict = ": MISSED, draftd has to be faster" if is_missed else ""
    console.print(f"draftd is {times.ratio:.2f}x as fast, of the medians{verdict}", highlight=False)
    if options.json:
        figures = {"requests": options.requests, "context": options.context, "ratio": times.ratio}
        medians = {name: float(np.median(getattr(times, name))) for name in ("draftd", "core", "ngram")}
        options.json.write_text(json.dumps(figures | {"micros_p50": medians}, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if is_missed else 0)


if __name__ == "__main__":
    main()
