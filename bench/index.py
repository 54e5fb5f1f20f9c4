"""The live index: bytes and nanoseconds per token, and how both grow.

    python -m bench.index [--corpus FILE.npz | --traces DIR] [--tokens N]

Times are CPU time of the one thread that indexes, best of the repetitions. Text is real; the made-up sequences are
those that make careless suffix automata quadratic.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.text import TokenArray, add_traces_option, corpus_documents, first_tokens, trace_documents
from draftd.native import Index

BYTES_PER_TOKEN_LIMIT = 40.0
TOKENS_PER_SECOND_FLOOR = 2_000_000
DOUBLING_LIMIT = 2.5


@dataclass(frozen=True)
class Cost:
    tokens: int
    seconds: float
    bytes: int
    states: int
    edges: int

    @property
    def nanoseconds_per_token(self) -> float:
        return self.seconds / self.tokens * 1e9


def measure(documents: list[TokenArray], repetitions: int) -> Cost:
    best = float("inf")
    for _ in range(repetitions):
        index = Index()
        started = time.thread_time()
        for document in documents:
            index.append(document)
            index.end_document()
        best = min(best, time.thread_time() - started)
    return Cost(index.tokens, best, index.memory_size(), index.states, index.edges)


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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="index this .npz instead of recorded traffic")
    add_traces_option(parser)
    parser.add_argument("--tokens", type=int, default=1_000_000, help="tokens to index; default 1,000,000")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)

    source = options.corpus or options.traces
    documents = corpus_documents(options.corpus) if options.corpus else trace_documents(options.traces)
    texts = {f"text: {source.name}": documents}
    texts |= {name: [sequence] for name, sequence in made_up_sequences(options.tokens).items()}

    table = Table(title="Live index, one thread", title_justify="left")
    table.add_column("sequence", no_wrap=True)
    for heading in (
        "tokens",
        "bytes\n/token",
        "ns\n/token",
        "M tokens\n/s",
        "states\n/token",
        "edges\n/token",
        "all\n/half",
        "all\n/tenth",
    ):
        table.add_column(heading, justify="right")
    for name, text in texts.items():
        large = measure(first_tokens(text, options.tokens), options.repetitions)
        half = measure(first_tokens(text, large.tokens // 2), options.repetitions)
        tenth = measure(first_tokens(text, large.tokens // 10), options.repetitions)
        table.add_row(
            name,
            f"{large.tokens:,}",
            f"{large.bytes / large.tokens:.1f}",
            f"{large.nanoseconds_per_token:.0f}",
            f"{1e3 / large.nanoseconds_per_token:.2f}",
            f"{large.states / large.tokens:.2f}",
            f"{large.edges / large.tokens:.2f}",
            f"{large.seconds / half.seconds:.2f}",
            f"{large.seconds / tenth.seconds:.1f}",
        )
    console = Console(width=110)
    console.print(table)
    console.print(
        "all/half, all/tenth: time for all tokens over time for a half, a tenth of them. Linear work shows as 2 and 10,"
        " and more where the smaller index fits into a cache and the larger one does not.\n"
        f"Wanted of text: at most {BYTES_PER_TOKEN_LIMIT:.0f} bytes/token, at least"
        f" {TOKENS_PER_SECOND_FLOOR / 1e6:.0f} M tokens/s. Wanted of every sequence: all/half below {DOUBLING_LIMIT}.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
