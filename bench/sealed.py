"""One sealed segment under a batch: looking up contexts, and drafting from it alone, timed inside the core.

    python -m bench.sealed [--corpus FILE.npz] [--traces DIR] [--tokens 20000000] [--requests 64] [--nodes 16]

Contexts are taken at random from the outputs of recorded traffic, which the segment need not hold. A lookup is the
longest match and the 16 nearest contexts of every request; a draft is that and a tree for every request. A corpus that
is too small is followed by copies of itself with ids permuted. Ends with status 1 if a target is missed; there are
targets only for 64 requests of 16 nodes beside 20M tokens. Needs what `make test` installs.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.text import TokenArray, add_traces_option, corpus_documents, first_tokens, permuted_copies
from draftd.demo.sample import SAMPLE_CORPUS, trace_files
from draftd.native import SegmentBuilder
from draftd.observe import terminal
from draftd.replay.traces import read_trace

REQUESTS, NODES, TOKENS = 64, 16, 20_000_000  # what the targets are for
LIMITS = {"lookup": 80.0, "draft": 250.0}  # microseconds, p50 of a batch
CONTEXT = 64  # tokens; no match is longer
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Times:
    """Microseconds of every batch."""

    lookup: list[float]
    draft: list[float]

    def missed_targets(self) -> list[str]:
        medians = {"lookup": np.median(self.lookup), "draft": np.median(self.draft)}
        return [
            f"p50 of a {what}: {median:.0f} µs, at most {LIMITS[what]:.0f} wanted"
            for what, median in medians.items()
            if median > LIMITS[what]
        ]


def build_segment(documents: Sequence[TokenArray], path: Path) -> None:
    builder = SegmentBuilder("")
    ends = np.array(list(accumulate(map(len, documents))), np.int64)
    builder.add(np.concatenate(documents), ends, [""] * len(documents), np.zeros(len(documents), np.int64))
    builder.write(path)


def contexts_of(traces: Path, count: int) -> TokenArray:
    """int32[count, 64]: texts of requests up to a random token of their outputs."""
    texts = [(request.prompt, request.output) for path in trace_files(traces) for request in read_trace(path)]
    texts = [(prompt, output) for prompt, output in texts if len(prompt) >= CONTEXT]
    rng = np.random.default_rng(1)
    contexts = np.empty((count, CONTEXT), np.int32)
    for context in contexts:
        prompt, output = texts[rng.integers(len(texts))]
        context[:] = np.concatenate([prompt, output[: rng.integers(len(output))]])[-CONTEXT:]
    return contexts


def build_program(preset: str = "bench") -> Path:
    cmake = Path(sys.executable).with_name("cmake")
    for step in (["--preset", preset], ["--build", "--preset", preset, "--target", "sealed_bench"]):
        subprocess.run([cmake, *step], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return ROOT / f"build/{preset}/cpp/bench/sealed_bench"


def measure(program: Path, documents: Sequence[TokenArray], contexts: TokenArray, requests: int, nodes: int) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        segment, file = Path(folder) / "segment", Path(folder) / "contexts"
        build_segment(documents, segment)
        contexts.tofile(file)
        command = [program, segment, file, str(requests), str(nodes)]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    times = Times([], [])
    for line in lines:
        what, microseconds = line.split()
        getattr(times, what).append(float(microseconds))
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SAMPLE_CORPUS, help=".npz with token_ids and doc_offsets")
    add_traces_option(parser)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--batches", type=int, default=4000)
    parser.add_argument("--preset", default="bench", help="of CMakePresets.json, to build the program with")
    options = parser.parse_args(arguments)

    documents = first_tokens(permuted_copies(corpus_documents(options.corpus), options.tokens), options.tokens)
    contexts = contexts_of(options.traces, options.batches * options.requests)
    times = measure(build_program(options.preset), documents, contexts, options.requests, options.nodes)

    title = f"{options.requests} requests, {options.nodes} nodes, one segment of {options.tokens:,} tokens: µs a batch"
    table = Table("in the core", title=title, title_justify="left")
    for column in ("p50", "p99", "for each request"):
        table.add_column(column, justify="right")
    for what, microseconds in (("lookup", times.lookup), ("draft", times.draft)):
        p50, p99 = np.percentile(microseconds, [50, 99])
        table.add_row(what, f"{p50:.1f}", f"{p99:.1f}", f"{p50 / options.requests:.2f}")
    console = terminal.console()
    console.print(table)
    with_targets = (options.requests, options.nodes, options.tokens) == (REQUESTS, NODES, TOKENS)
    missed = times.missed_targets() if with_targets else []
    for line in missed:
        console.print(line, style="red")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
