"""What drafting takes, in the core and on one thread, beside ArcticInference in the same run.

    python -m bench.arctic [--python build/arctic/bin/python] [--traces DIR]

A batch of 64 requests with 8,192 tokens of context each: draftd commits and drafts a tree of 16 nodes for each;
ArcticInference, with its defaults, a chain of 32. The two take turns step by step and are told the same tokens. And one
request with a million tokens of shared history, 16 nodes, with and without learning from each step. Ends with status 1
if a target is missed.

Without --python only draftd is measured. ArcticInference needs a virtual environment of its own, in which nothing of it
is built but the suffix extension:

    python3 -m venv build/arctic && . build/arctic/bin/activate
    pip install numpy nanobind==2.9.2 cmake ninja
    # its source archive, from PyPI ("pip download" would build it, which takes torch); unpacked, and from its folder:
    cmake -S csrc/suffix_decoding -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE=$(which python) \\
        -DCMAKE_LIBRARY_OUTPUT_DIRECTORY=$PWD/arctic_inference/suffix_decoding
    cmake --build build
    pwd > $(python -c 'import site; print(site.getsitepackages()[0])')/arctic.pth
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.text import TokenArray, add_traces_option, first_tokens, permuted_copies, trace_documents
from draftd.client import Request
from draftd.client.local import LocalClient
from draftd.config import DraftingSettings
from draftd.observe import terminal
from draftd.replay.sessions import in_process
from draftd.replay.verification import verify

REQUESTS = 64
CONTEXT = 8192  # tokens
NODES = 16
SHARED = 1_000_000  # tokens
BATCH_LIMIT = 600.0  # microseconds, p50
RATIO_LIMIT = 0.5  # of ArcticInference
REQUEST_LIMIT = 10.0  # microseconds, p50, without learning
LEARNING_LIMIT = 3.0  # microseconds a step
PLACES = 8  # of the text, that single requests are from
MOST_EMITTED = NODES + 1
SIDE = Path(__file__).with_name("arctic_side.py")


def windows(documents: Sequence[TokenArray], requests: int, length: int) -> TokenArray:
    """int32[requests, length] of text, each row from another place; rows overlap if there is not enough of it."""
    text = np.concatenate(list(documents))
    starts = np.linspace(0, len(text) - length, requests).astype(int)
    return np.stack([text[start : start + length] for start in starts]).astype(np.int32)


class Batch:
    """Requests under way at draftd, whose text goes on as recorded."""

    def __init__(self, client: LocalClient, text: TokenArray, context: int) -> None:
        self._client = client
        self._text = [row.tolist() for row in text]
        self._requests: list[Request] = [
            client.open(f"r{number}", row[:context], share="none", wait=True) for number, row in enumerate(text)
        ]
        self._length = [context] * len(text)
        self._next = [1] * len(text)  # tokens that each commits with the next step

    def step(self) -> tuple[list[int], int]:
        """Commits and drafts for all; returns the tokens that each committed, and microseconds in the core."""
        emitted = self._next
        commits: dict[Request, list[int]] = {}
        for number, (request, count) in enumerate(zip(self._requests, emitted, strict=True)):
            commits[request] = self._text[number][self._length[number] : self._length[number] + count]
            self._length[number] += count
        drafts = self._client.step(commits, max_nodes=NODES)
        micros = self._client.last_core_micros
        self._next = [
            verify(draft.tokens.tolist(), draft.parents.tolist(), self._text[number], self._length[number]).emitted
            for number, draft in enumerate(drafts.values())
        ]
        return emitted, micros


class ArcticSide:
    """The other process, told the same tokens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        if self._answer() != "ready":
            raise SystemExit("that Python cannot run ArcticInference; see `python -m bench.arctic --help`")

    def step(self, emitted: Sequence[int]) -> tuple[float, float]:
        """Microseconds of its updates and of its drafts."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, emitted)) + "\n")
        self._process.stdin.flush()
        updates, drafts = map(float, self._answer().split())
        return updates, drafts

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@dataclass
class Times:
    """Microseconds of each step: draftd's of one batch, of one request and the same without learning;
    ArcticInference's drafts and updates."""

    batch: list[float] = field(default_factory=list)
    request: list[float] = field(default_factory=list)
    without_learning: list[float] = field(default_factory=list)
    drafts: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)

    @property
    def learning(self) -> float:
        """Microseconds that learning adds to a step of one request, on average; the slowest tenth left out."""
        usual = [np.sort(micros)[: -(len(micros) // 10) or None] for micros in (self.request, self.without_learning)]
        return float(np.mean(usual[0]) - np.mean(usual[1]))

    def missed_targets(self) -> list[str]:
        missed = []
        batch, request = np.median(self.batch), np.median(self.without_learning)
        if batch > BATCH_LIMIT:
            missed.append(f"batch: {batch:.0f} µs, at most {BATCH_LIMIT:.0f} wanted")
        if self.drafts and batch > RATIO_LIMIT * np.median(self.drafts):
            missed.append(f"batch: {batch / np.median(self.drafts):.2f}x of ArcticInference, {RATIO_LIMIT}x wanted")
        if request > REQUEST_LIMIT:
            missed.append(f"one request: {request:.1f} µs, at most {REQUEST_LIMIT:.0f} wanted")
        if self.learning > LEARNING_LIMIT:
            missed.append(f"learning: {self.learning:.1f} µs a step, at most {LEARNING_LIMIT:.0f} wanted")
        return missed


@contextmanager
def arctic(python: Path | None, text: TokenArray, context: int) -> Iterator[ArcticSide | None]:
    if python is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="draftd-bench-") as folder:
        file = Path(folder) / "text.npz"
        np.savez(file, text=text)
        words = [str(python), str(SIDE), str(file), str(context)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield ArcticSide(process)  # whose input ends with the block, and it with that


def measure(
    documents: list[TokenArray], python: Path | None, requests: int, context: int, steps: int, shared: int
) -> Times:
    times = Times()
    of_requests, others = documents[::2], documents[1::2]  # what is shared must not be the requests' own text
    text = windows(of_requests, requests, context + (steps + 1) * MOST_EMITTED)
    with in_process("bench", corpora={}) as client, arctic(python, text, context) as other:
        batch = Batch(client, text, context)
        for _ in range(steps):
            emitted, micros = batch.step()
            times.batch.append(micros)
            if other is not None:
                updates, drafts = other.step(emitted)
                times.updates.append(updates)
                times.drafts.append(drafts)
    for learning, micros_of in ((True, times.request), (False, times.without_learning)):
        drafting = DraftingSettings(learning=learning)
        with in_process("bench", corpora={}, drafting=drafting) as client:
            for number, document in enumerate(first_tokens(permuted_copies(others, shared), shared)):
                client.open(f"shared-{number}", document, share="all").close("finished")
            for row in text[:: max(1, len(text) // PLACES)]:  # one request after another
                single = Batch(client, row[None], context)
                micros_of += [single.step()[1] for _ in range(steps)]
    return times


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="Python of the virtual environment that has ArcticInference")
    add_traces_option(parser)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--context", type=int, default=CONTEXT, help="tokens of each request's prompt")
    parser.add_argument("--shared", type=int, default=SHARED, help="tokens of shared history, for one request")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args(arguments)

    times = measure(
        trace_documents(options.traces),
        options.python,
        options.requests,
        options.context,
        options.steps,
        options.shared,
    )
    table = Table(title="Microseconds in the core, one thread", title_justify="left")
    for heading in ("", "p50", "p99"):
        table.add_column(heading, justify="right" if heading else "left")
    batch = f"batch of {options.requests}, {options.context:,} tokens each"
    for name, values in (
        (f"draftd, {batch}: commits and trees of {NODES}", times.batch),
        (f"ArcticInference, {batch}: chains of 32", times.drafts),
        ("ArcticInference, its updates beside them", times.updates),
        (f"draftd, one request, {options.shared:,} tokens shared: commit and tree of {NODES}", times.request),
        ("the same, without learning", times.without_learning),
    ):
        if values:
            table.add_row(name, *(f"{np.percentile(values, percent):.0f}" for percent in (50, 99)))
    console = terminal.console(width=110)
    console.print(table)
    console.print(f"learning takes {times.learning:.1f} µs of a step of one request")
    if times.drafts:
        console.print(f"{np.median(times.batch) / np.median(times.drafts):.2f}x of ArcticInference, of the medians")
    full = (options.requests, options.context, options.shared) == (REQUESTS, CONTEXT, SHARED)
    missed = times.missed_targets() if full else []
    for miss in missed:
        console.print(miss, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
