"""A step as rows: packs the columns that an engine takes and unpacks those that it answers with."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

NO_TAIL = 2**32 - 1
BY_BITMAP = -2


@dataclass(frozen=True)
class CommitRow:
    request: int
    epoch: int
    start: int
    tokens: Sequence[int] = ()
    max_nodes: int = 0
    tail_base: int = NO_TAIL
    verified: int = -1
    bitmap: Sequence[int] = ()


@dataclass(frozen=True)
class TailRow:
    base: int
    status: int
    reason: int
    kind: int
    detail: int
    allowed: int
    accepted: int
    tokens: list[int]
    parents: list[int]
    survival: list[float]
    source: list[int]


@dataclass(frozen=True)
class Drafted:
    """What a draft source has for one row; no survival: it states none."""

    tokens: Sequence[int] = ()
    parents: Sequence[int] = ()
    survival: Sequence[float] | None = None


def step(
    engine: Any,
    columns: Any,
    verifier: int,
    rows: Sequence[CommitRow],
    *,
    now: float,
    budget: int = 0,
    min_survival: float = 0.0,
    cost: Any = None,
    most_nodes: int | None = None,
    drafted: Sequence[Drafted] | None = None,
) -> list[TailRow]:
    """One engine step; `engine`, its StepColumns, `columns`, and its StepCost are native or those of the twin. With
    `drafted`, by row, it drafts once more."""
    packed_rows = columns(
        request=packed("<u4", [row.request for row in rows]),
        epoch=packed("<u4", [row.epoch for row in rows]),
        start=packed("<u4", [row.start for row in rows]),
        token_end=packed("<u4", np.cumsum([len(row.tokens) for row in rows], dtype=np.int64)),
        tokens=packed("<i4", [token for row in rows for token in row.tokens]),
        tail_base=packed("<u4", [row.tail_base for row in rows]),
        verified=packed("<i4", [row.verified for row in rows]),
        bitmap_end=packed("<u4", np.cumsum([len(row.bitmap) for row in rows], dtype=np.int64)),
        bitmap=packed("u1", [went_through for row in rows for went_through in row.bitmap]),
        max_nodes=packed("<u2", [row.max_nodes for row in rows]),
    )
    tails = engine.step(verifier, now, packed_rows, budget, min_survival, cost, most_nodes)
    if drafted is not None:
        nodes = _packed_nodes(drafted)
        tails = engine.redraft(verifier, packed_rows, tails, *nodes, budget, min_survival, cost)
    return _tail_rows(tails)


def _packed_nodes(drafted: Sequence[Drafted]) -> tuple[bytes, bytes, bytes, bytes]:
    """Of one source: all of its rows state survivals, or none."""
    return (
        packed("<u4", np.cumsum([len(row.tokens) for row in drafted], dtype=np.int64)),
        packed("<i4", [token for row in drafted for token in row.tokens]),
        packed("<i2", [parent for row in drafted for parent in row.parents]),
        packed("<f4", [survival for row in drafted for survival in row.survival or ()]),
    )


def packed(kind: str, values: Any) -> bytes:
    return np.asarray(values, dtype=kind).tobytes()


def _tail_rows(tails: Any) -> list[TailRow]:
    base, status, reason, kind, detail, allowed, accepted, node_end, tokens, parents, survival, source = (
        np.frombuffer(getattr(tails, name), dtype=form).tolist()
        for name, form in {
            "base": "<u4",
            "status": "u1",
            "reason": "u1",
            "kind": "u1",
            "detail": "<u4",
            "allowed": "<u2",
            "accepted": "<i2",
            "node_end": "<u4",
            "tokens": "<i4",
            "parents": "<i2",
            "survival": "<f4",
            "source": "u1",
        }.items()
    )
    return [
        TailRow(
            base[row],
            status[row],
            reason[row],
            kind[row],
            detail[row],
            allowed[row],
            accepted[row],
            tokens[first:end],
            parents[first:end],
            survival[first:end],
            source[first:end],
        )
        for row, (first, end) in enumerate(pairwise([0, *node_end]))
    ]
