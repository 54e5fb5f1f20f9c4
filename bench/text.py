"""Token text to measure with: a corpus file, or the distinct text of recorded traffic."""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from draftd.demo.sample import SAMPLE, trace_files
from draftd.replay.traces import RecordedRequest, read_trace

TokenArray = NDArray[np.int32]


def add_traces_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--traces", type=Path, default=SAMPLE, help="folder of recordings (*.jsonl.gz); default: the bundled sample"
    )


def corpus_documents(path: Path) -> list[TokenArray]:
    """The documents of an .npz file with `token_ids` and `doc_offsets`."""
    with np.load(path) as corpus:
        tokens, offsets = corpus["token_ids"].astype(np.int32), corpus["doc_offsets"]
    return [tokens[start:end] for start, end in itertools.pairwise(offsets)]


def trace_documents(folder: Path) -> list[TokenArray]:
    """Prompt and output of every recorded request, but of a session only the last turn: it holds the others."""
    return [document for path in trace_files(folder) for document in _without_earlier_turns(read_trace(path))]


def _without_earlier_turns(requests: Iterator[RecordedRequest]) -> Iterator[TokenArray]:
    previous: TokenArray | None = None
    for request in requests:
        text = np.concatenate([request.prompt, request.output])
        if previous is not None and not np.array_equal(text[: len(previous)], previous):
            yield previous
        previous = text
    if previous is not None:
        yield previous


def first_tokens(documents: list[TokenArray], limit: int) -> list[TokenArray]:
    """As many documents as `limit` tokens take, the last one cut; fewer tokens if there are no more."""
    taken: list[TokenArray] = []
    for document in documents:
        if limit <= 0:
            break
        taken.append(document[:limit])
        limit -= len(taken[-1])
    return taken


def permuted_copies(documents: list[TokenArray], tokens: int) -> list[TokenArray]:
    """The documents, and copies of them with ids permuted, until there are so many tokens: other text, as real."""
    grown = list(documents)
    size = sum(map(len, documents))
    vocabulary = 1 + max(int(document.max()) for document in documents)
    for seed in range(1, -(-tokens // size)):
        other = np.random.default_rng(seed).permutation(vocabulary).astype(np.int32)
        grown += [other[document] for document in documents]
    return grown
