"""The live index: bytes and nanoseconds per token, and how both grow.

    python -m bench.index [--corpus FILE.npz | --traces DIR] [--tokens N]

Times are CPU time of the one thread that indexes, best of the repetitions; the sizes take turns, so that a busy machine
is busy for all of them. Text is real; the made-up sequences are those that make careless suffix automata quadratic.
Ends with status 1 if a target is missed. The targets are for full size: with fewer --tokens there are none.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.text import TokenArray, add_traces_option, corpus_documents, first_tokens, trace_documents
from draftd.native import Index
from draftd.observe import terminal

FULL_SIZE = 1_000_000  # tokens
BYTES_PER_TOKEN_LIMIT = 40.0
TOKENS_PER_SECOND_FLOOR = 2_000_000
# Twice the tokens may take so many times the time. Of an index that stays in a processor's own cache, time is work, and
# quadratic work would show as 4 there already. A large one also waits for memory, the longer the larger it is.
CACHED_SIZE = 12_000  # tokens, some 400 KB
CACHED_REPETITIONS = 20
CACHED_DOUBLING_LIMIT = 2.5
DOUBLING_LIMIT = 3.5


@dataclass(frozen=True)
class Cost:
    tokens: int
    seconds: float
    bytes: int
    states: int
    edges: int


@dataclass(frozen=True)
class Measured:
    """One sequence. `doubling`: time for all tokens over time for half of them; `cached_doubling`: for CACHED_SIZE."""

    name: str
    is_text: bool
    cost: Cost
    doubling: float
    cached_doubling: float

    @property
    def bytes_per_token(self) -> float:
        return self.cost.bytes / self.cost.tokens

    @property
    def tokens_per_second(self) -> float:
        return self.cost.tokens / self.cost.seconds

    def missed_targets(self) -> list[str]:
        """Size and speed are promised of text, growth of every sequence."""
        if self.cost.tokens < FULL_SIZE:
            return []
        checks = [
            (
                not self.is_text or self.bytes_per_token <= BYTES_PER_TOKEN_LIMIT,
                f"{self.bytes_per_token:.1f} bytes/token, at most {BYTES_PER_TOKEN_LIMIT:.0f} wanted",
            ),
            (
                not self.is_text or self.tokens_per_second >= TOKENS_PER_SECOND_FLOOR,
                f"{self.tokens_per_second:,.0f} tokens/s, at least {TOKENS_PER_SECOND_FLOOR:,} wanted",
            ),
            (
                self.cached_doubling < CACHED_DOUBLING_LIMIT,
                f"{CACHED_SIZE:,} tokens take {self.cached_doubling:.2f} halves, below {CACHED_DOUBLING_LIMIT} wanted",
            ),
            (
                self.doubling < DOUBLING_LIMIT,
                f"{self.cost.tokens:,} tokens take {self.doubling:.2f} halves, below {DOUBLING_LIMIT} wanted",
            ),
        ]
        return [f"{self.name}: {miss}" for kept, miss in checks if not kept]


def index_cost(documents: Sequence[TokenArray]) -> Cost:
    index = Index()
    started = time.thread_time()
    for document in documents:
        index.append(document)
        index.end_document()
    seconds = time.thread_time() - started
    return Cost(index.tokens, seconds, index.memory_size(), index.states, index.edges)


def with_doubling(documents: list[TokenArray], tokens: int, repetitions: int) -> tuple[Cost, float]:
    """The least cost of so many tokens, and its time over that of half of them."""
    whole = first_tokens(documents, tokens)
    half = first_tokens(documents, sum(map(len, whole)) // 2)
    costs = [(index_cost(whole), index_cost(half)) for _ in range(repetitions)]
    best, best_half = (min(size, key=lambda cost: cost.seconds) for size in zip(*costs, strict=True))
    return best, best.seconds / best_half.seconds


def measure(name: str, documents: list[TokenArray], options: argparse.Namespace, *, is_text: bool) -> Measured:
    _, cached_doubling = with_doubling(documents, min(CACHED_SIZE, options.tokens), CACHED_REPETITIONS)
    cost, doubling = with_doubling(documents, options.tokens, options.repetitions)
    return Measured(name, is_text, cost, doubling, cached_doubling)


def fibonacci_word(length: int) -> TokenArray:
    older, word = np.array([0], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    while len(word) < length:
        older, word = word, np.concatenate([word, older])
    return word[:length]


def made_up_sequences(length: int) -> dict[str, TokenArray]:
    return {
        "aaaa": np.zeros(length, dtype=np.int32),
        "abab": np.arange(length, dtype=np.int32) % 2,
        "Fibonacci": fibonacci_word(length),
        "random binary": np.random.default_rng(1).integers(0, 2, length, dtype=np.int32),
    }


def results_table(results: Sequence[Measured]) -> Table:
    table = Table(title="Live index, one thread", title_justify="left")
    table.add_column("sequence", no_wrap=True)
    for heading in (
        "tokens",
        "bytes\n/token",
        "ns\n/token",
        "M tokens\n/s",
        "states\n/token",
        "edges\n/token",
        f"{CACHED_SIZE // 1000}k\n/half",
        "all\n/half",
    ):
        table.add_column(heading, justify="right")
    for result in results:
        cost = result.cost
        table.add_row(
            result.name,
            f"{cost.tokens:,}",
            f"{result.bytes_per_token:.1f}",
            f"{1e9 / result.tokens_per_second:.0f}",
            f"{result.tokens_per_second / 1e6:.2f}",
            f"{cost.states / cost.tokens:.2f}",
            f"{cost.edges / cost.tokens:.2f}",
            f"{result.cached_doubling:.2f}",
            f"{result.doubling:.2f}",
        )
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="index this .npz instead of recorded traffic")
    add_traces_option(parser)
    parser.add_argument("--tokens", type=int, default=FULL_SIZE, help="tokens to index; default 1,000,000")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args(arguments)

    source = options.corpus or options.traces
    documents = corpus_documents(options.corpus) if options.corpus else trace_documents(options.traces)
    results = [measure(f"text: {source.name}", documents, options, is_text=True)]
    results += [
        measure(name, [sequence], options, is_text=False)
        for name, sequence in made_up_sequences(options.tokens).items()
    ]
    console = terminal.console(width=110)
    console.print(results_table(results))
    console.print(
        f"{CACHED_SIZE // 1000}k/half, all/half: time for {CACHED_SIZE:,} tokens, and for all, over time for a half."
        " Linear work shows as 2 where the index fits into a cache, and as more where it does not.",
        highlight=False,
    )
    missed = [miss for result in results for miss in result.missed_targets()]
    for miss in missed:
        console.print(miss, highlight=False)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
