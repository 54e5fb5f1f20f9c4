"""Packing of Python values into the little-endian columns of the wire contract."""

import sys
from array import array
from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from draftd import native

if sys.byteorder != "little":
    raise ImportError("draftd.client: the wire columns are little-endian and this machine is not")

INVALID_TOKEN_ID = -1  # stands for an id that does not fit int32: the drafter refuses it with its position


def whole(name: str, value: SupportsIndex) -> int:
    """Raises ValueError for anything but an integer, of Python's kind or numpy's."""
    try:
        return index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; give a whole number") from None


def u16_column(values: Iterable[int]) -> bytes:
    return array("H", values).tobytes()


def u32_column(values: Iterable[int]) -> bytes:
    return array("I", values).tobytes()


def token_columns(rows: Sequence[Sequence[int]]) -> tuple[bytes, bytes]:
    """Rows of token ids as i32[tokens], and u32[rows], where each row ends in it. An id beyond 32 bits becomes
    INVALID_TOKEN_ID.

    Raises ValueError when a row is none of integers.
    """
    try:
        return native.pack_tokens(rows)
    except TypeError:
        raise ValueError(f"{_what_is_no_token(rows)}; give a row of token ids") from None


def token_column(tokens: Sequence[int]) -> bytes:
    """One row as i32[n]."""
    return token_columns((tokens,))[0]


def _what_is_no_token(rows: Sequence[Sequence[int]]) -> str:
    for row in rows:
        try:
            tokens = list(row)
        except TypeError:
            return f"the tokens of a request are {row!r}"
        for token in tokens:
            try:
                index(token)
            except TypeError:
                return f"token ids are integers, not {repr(token)[:40].splitlines()[0]}"
    return "a row can't be read again"


def prompt_column(tokens: ArrayLike) -> bytes:
    """The same for a long text, which may be an array of any kind."""
    if isinstance(tokens, list | tuple):
        return token_column(tokens)  # numpy takes ten times as long
    ids = np.asarray(tokens)
    if ids.size == 0:
        return b""
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"token ids must be one row of integers, not {ids.ndim} dimensions of {ids.dtype}")
    if ids.dtype.itemsize > 4 or ids.dtype.kind == "u":
        ids = np.where((ids >= 0) & (ids < 2**31), ids, INVALID_TOKEN_ID)
    return ids.astype("<i4", copy=False).tobytes()
