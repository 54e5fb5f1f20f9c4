"""Sealed segments: bytes per token of the file, tokens per second of the build, memory while it runs.

    python -m bench.segment [--corpus FILE.npz] [--tokens N ...] [--repetitions N]

A build is everything from documents in memory to a file on disk: sorting, packing, checksums, writing. Its rate is by
CPU time of the one thread that does it, best of the repetitions; what the disk takes comes on top of that, and shows in
the seconds that passed. Memory is the most that the process had more than before the first document. A corpus that is
too small is followed by copies of itself with ids permuted. Ends with status 1 if a target is missed; the targets are
for full size: with fewer tokens there are none.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.text import TokenArray, corpus_documents, first_tokens, permuted_copies
from draftd.demo.sample import SAMPLE_CORPUS
from draftd.native import Segment, SegmentBuilder
from draftd.observe import terminal

FULL_SIZES = (10_000_000, 20_000_000)  # tokens
BYTES_PER_TOKEN_LIMIT = 5.8  # 5.63 and what documents carry
TOKENS_PER_SECOND_FLOOR = 6_000_000
PEAK_PER_TOKEN_LIMIT = 14.0


@dataclass(frozen=True)
class Measured:
    tokens: int
    file_bytes: int
    cpu_seconds: float
    seconds: float
    peak_bytes: int
    open_seconds: float

    @property
    def bytes_per_token(self) -> float:
        return self.file_bytes / self.tokens

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.cpu_seconds

    @property
    def peak_bytes_per_token(self) -> float:
        return self.peak_bytes / self.tokens

    def missed_targets(self) -> list[str]:
        if self.tokens < FULL_SIZES[0]:
            return []
        checks = [
            (
                self.bytes_per_token <= BYTES_PER_TOKEN_LIMIT,
                f"{self.bytes_per_token:.2f} bytes/token, at most {BYTES_PER_TOKEN_LIMIT} wanted",
            ),
            (
                self.tokens_per_second >= TOKENS_PER_SECOND_FLOOR,
                f"{self.tokens_per_second:,.0f} tokens/s, at least {TOKENS_PER_SECOND_FLOOR:,} wanted",
            ),
            (
                self.peak_bytes_per_token <= PEAK_PER_TOKEN_LIMIT,
                f"{self.peak_bytes_per_token:.1f} bytes/token to build, at most {PEAK_PER_TOKEN_LIMIT:g} wanted",
            ),
        ]
        return [f"{self.tokens:,} tokens: {miss}" for kept, miss in checks if not kept]


def resident_bytes(figure: str) -> int:
    """VmRSS: now; VmHWM: at most, since `forget_peak`."""
    found = re.search(rf"^{figure}:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measure(documents: Sequence[TokenArray], path: Path) -> Measured:
    tokens, ends = np.concatenate(documents), np.cumsum([len(document) for document in documents], dtype=np.int64)
    labels, times = [str(number) for number in range(len(ends))], np.zeros(len(ends), np.int64)
    forget_peak()
    before = resident_bytes("VmRSS")
    started, cpu_started = time.perf_counter(), time.thread_time()
    builder = SegmentBuilder("")
    builder.add(tokens, ends, labels, times)
    builder.write(path)
    seconds, cpu_seconds = time.perf_counter() - started, time.thread_time() - cpu_started
    peak = resident_bytes("VmHWM") - before
    started = time.perf_counter()
    segment = Segment.open(path)
    open_seconds = time.perf_counter() - started
    return Measured(segment.tokens, path.stat().st_size, cpu_seconds, seconds, peak, open_seconds)


def best_of(documents: Sequence[TokenArray], repetitions: int) -> Measured:
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        measured = [measure(documents, Path(folder) / str(number)) for number in range(repetitions)]
    return min(measured, key=lambda one: one.cpu_seconds)


def results_table(results: Sequence[Measured]) -> Table:
    table = Table(title="Sealed segment, one thread", title_justify="left")
    for heading in (
        "tokens",
        "file\nbytes/token",
        "build\nM tokens/s",
        "seconds\nwith disk",
        "memory while building\nbytes/token",
        "open\nms",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(
            f"{result.tokens:,}",
            f"{result.bytes_per_token:.2f}",
            f"{result.tokens_per_second / 1e6:.2f}",
            f"{result.seconds:.2f}",
            f"{result.peak_bytes_per_token:.1f}",
            f"{1000 * result.open_seconds:.0f}",
        )
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SAMPLE_CORPUS, help="default: the bundled sample")
    parser.add_argument("--tokens", type=int, nargs="+", default=FULL_SIZES, help="default: 10 and 20 million")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)

    documents = permuted_copies(corpus_documents(options.corpus), max(options.tokens))
    results = [best_of(first_tokens(documents, tokens), options.repetitions) for tokens in options.tokens]
    console = terminal.console(width=110)
    console.print(results_table(results))
    missed = [miss for result in results for miss in result.missed_targets()]
    for miss in missed:
        console.print(miss, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
