"""A client's columns: tokens on their way out, tails on their way in; see proto/draftd/v1/draft.proto."""

from collections.abc import Iterable
from itertools import accumulate, pairwise
from operator import index
from typing import SupportsIndex

import numpy as np

from draftd.reference.columns import unpacked

INVALID_TOKEN = -1  # stands for an id that 32 bits don't hold
IDS = 2**31  # of a vocabulary of unknown size


def pack_tokens(rows: Iterable[Iterable[SupportsIndex]]) -> tuple[bytes, bytes]:
    """Rows of token ids as i32[tokens], and u32[rows], where each row ends in it. Raises TypeError for what is none of
    integers."""
    packed = [[_token(item) for item in row] for row in rows]
    tokens = np.array([token for row in packed for token in row], "<i4")
    return tokens.tobytes(), np.array(list(accumulate(map(len, packed))), "<u4").tobytes()


def _token(item: SupportsIndex) -> int:
    number = index(item)
    return number if -(2**31) <= number < 2**31 else INVALID_TOKEN


def check_tails(
    epoch: bytes,
    base: bytes,
    status: bytes,
    reason: bytes,
    kind: bytes,
    node_end: bytes,
    tokens: bytes,
    parents: bytes,
    survival: bytes,
    source: bytes,
    vocabulary_size: int,
) -> None:
    """Raises ValueError where columns disagree, or would harm a verifier."""
    rows, nodes = len(status), len(source)
    for name, column, entries, size in (
        ("epoch", epoch, rows, 4),
        ("base", base, rows, 4),
        ("reason", reason, rows, 1),
        ("kind", kind, rows, 1),
        ("node_end", node_end, rows, 4),
        ("tokens", tokens, nodes, 4),
        ("parents", parents, nodes, 2),
        ("survival", survival, nodes, 4),
    ):
        if len(column) != entries * size:
            raise ValueError(f"column {name} has {len(column)} bytes for {entries} entries")
    ends = [0, *unpacked("<u4", node_end)]
    for row, (first, end) in enumerate(pairwise(ends)):
        if end < first:
            raise ValueError(f"column node_end: row {row} ends before it begins")
    if ends[-1] != nodes:
        raise ValueError(f"column node_end ends at {ends[-1]} of {nodes} values")
    limit = min(vocabulary_size or IDS, IDS)
    places = [node for first, end in pairwise(ends) for node in range(end - first)]
    for node, token, parent in zip(places, unpacked("<i4", tokens), unpacked("<i2", parents), strict=True):
        if not 0 <= token < limit:
            raise ValueError(f"token id {token}, of a vocabulary of {limit}")
        if not -1 <= parent < node:
            raise ValueError(f"node {node} of a row has parent {parent}, which does not come before it")
