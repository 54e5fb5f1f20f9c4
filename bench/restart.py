"""How long a server that was killed takes until it serves again, with 20M tokens of corpora on its disk.

    python -m bench.restart [--corpus FILE.npz] [--tokens 20000000] [--repetitions 5]

A corpus file that is too small is followed by copies of itself with ids permuted; the first half of the documents is
one corpus, the second another. Every restart is followed by one of a server without any, for most of the time is
Python's own. The files are in the page cache. Ends with status 1 if the target is missed; only 20M tokens have one.
"""

import argparse
import io
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.killable import KillableServer
from bench.text import TokenArray, corpus_documents, first_tokens, permuted_copies
from draftd.demo.sample import SAMPLE_CORPUS
from draftd.observe.terminal import console

FULL_SIZE = 20_000_000  # tokens
TARGET = 2.0  # seconds, p50
TENANT = "acme"


@dataclass
class Times:
    """Seconds of every restart: until it serves, what of that it needed for its corpora, and the same without any."""

    tokens: int
    ready: list[float] = field(default_factory=list)
    restoring: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)

    def missed_targets(self) -> list[str]:
        median = float(np.median(self.ready))
        if self.tokens < FULL_SIZE or median <= TARGET:
            return []
        return [f"restart: {median:.2f} s, at most {TARGET} wanted"]


def measure(documents: Sequence[TokenArray], repetitions: int, folder: Path) -> Times:
    times = Times(sum(map(len, documents)))
    server, empty = KillableServer(folder / "full"), KillableServer(folder / "empty")
    try:
        server.start()
        half = len(documents) // 2
        for name, part in (("first", documents[:half]), ("second", documents[half:])):
            server.add_file(TENANT, name, packed(part), "application/x-npz")
        for _ in range(repetitions):
            server.kill()
            times.ready.append(server.start())
            times.restoring.append(restoring_seconds(server.log, times.tokens))
            empty.kill()
            times.empty.append(empty.start())
    finally:
        server.kill()
        empty.kill()
    return times


def packed(documents: Sequence[TokenArray]) -> bytes:
    """As an .npz file."""
    into = io.BytesIO()
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    np.savez(into, token_ids=np.concatenate(documents), doc_offsets=offsets)
    return into.getvalue()


def restoring_seconds(log: Path, tokens: int) -> float:
    """What the last start says in its log."""
    lines = re.findall(r"collections restored: (\d+) tokens in ([\d.]+) s", log.read_text())
    restored, seconds = lines[-1]
    if int(restored) != tokens:
        raise RuntimeError(f"{restored} of {tokens} tokens were restored; see {log}")
    return float(seconds)


def table(times: Times) -> Table:
    printed = Table(f"restart with {times.tokens:,} tokens", "p50 s", "max s")
    for column in printed.columns[1:]:
        column.justify = "right"
    rows = {"until it serves": times.ready, "of that, for corpora": times.restoring, "without corpora": times.empty}
    for name, seconds in rows.items():
        printed.add_row(name, f"{np.median(seconds):.2f}", f"{max(seconds):.2f}")
    return printed


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SAMPLE_CORPUS)
    parser.add_argument("--tokens", type=int, default=FULL_SIZE)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args(arguments)
    documents = first_tokens(permuted_copies(corpus_documents(options.corpus), options.tokens), options.tokens)
    with tempfile.TemporaryDirectory(prefix="draftd-") as folder:
        times = measure(documents, options.repetitions, Path(folder))
    console().print(table(times))
    missed = times.missed_targets()
    for target in missed:
        print(f"missed: {target}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
