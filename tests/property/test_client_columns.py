"""A client packs tokens and judges tails as the twins do."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from draftd import native
from draftd.reference import client_columns as reference
from tests.property.rows import packed

integers = st.one_of(st.integers(-(2**70), 2**70), st.integers(-5, 2**31 + 5), st.integers(0, 100).map(np.int64))
rows_of_tokens = st.lists(st.one_of(st.lists(integers), st.lists(st.integers(0, 9)).map(np.array)), max_size=5)
anything = st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=2), st.lists(st.floats() | integers)))


@given(st.one_of(rows_of_tokens, rows_of_tokens.map(tuple), anything))
def test_rows_of_tokens_are_packed_as_the_twin_packs_them(rows: Any) -> None:
    assert outcome(native.pack_tokens, rows) == outcome(reference.pack_tokens, rows)


@st.composite
def tails(draw: st.DrawFn) -> dict[str, bytes]:
    """Trees with ids up to 9; mostly one entry or the length of a column is changed then."""
    counts = draw(st.lists(st.integers(0, 4), max_size=4))
    rows, nodes = len(counts), sum(counts)
    columns = {
        "epoch": bytes(4 * rows),
        "base": bytes(4 * rows),
        "status": bytes(rows),
        "reason": bytes(rows),
        "kind": bytes(rows),
        "node_end": packed("<u4", list(accumulate(counts))),
        "tokens": packed("<i4", [draw(st.integers(0, 9)) for _ in range(nodes)]),
        "parents": packed("<i2", [draw(st.integers(-1, node - 1)) for count in counts for node in range(count)]),
        "survival": bytes(4 * nodes),
        "source": bytes(nodes),
    }
    change = draw(st.sampled_from(["none", "entry", "entry", "length"]))
    if change == "length":
        name = draw(st.sampled_from(sorted(columns)))
        columns[name] = draw(st.sampled_from([columns[name][:-1], columns[name] + b"\0", columns[name] * 2]))
    if change == "entry" and nodes:
        name, kind = draw(st.sampled_from([("node_end", "<u4"), ("tokens", "<i4"), ("parents", "<i2")]))
        entries = np.frombuffer(columns[name], kind).copy()
        entries[draw(st.integers(0, len(entries) - 1))] = draw(st.sampled_from([0, 1, 3, 5, 10, 20, 2**15 - 1]))
        columns[name] = (entries if draw(st.booleans()) else ~entries).tobytes()
    return columns


@given(tails(), st.sampled_from([0, 10, 2**31 + 5]))
def test_tails_are_judged_as_the_twin_judges_them(columns: dict[str, bytes], vocabulary_size: int) -> None:
    judge = native.check_tails
    assert outcome(judge, **columns, vocabulary_size=vocabulary_size) == outcome(
        reference.check_tails, **columns, vocabulary_size=vocabulary_size
    )


def outcome(function: Callable[..., Any], *arguments: Any, **named: Any) -> object:
    """What it returns, or which error it raises; of a ValueError, the words too."""
    try:
        return function(*arguments, **named)
    except TypeError:
        return TypeError
    except ValueError as error:
        return str(error)
