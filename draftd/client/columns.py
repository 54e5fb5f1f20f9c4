"""Packing of Python values into the little-endian columns of the wire contract."""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

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


def token_column(tokens: Sequence[int]) -> bytes:
    """Token ids as i32[n]. An id beyond 32 bits becomes INVALID_TOKEN_ID.

    Raises ValueError when something in `tokens` is no integer.
    """
    try:
        return struct.pack(f"<{len(tokens)}i", *tokens)
    except (struct.error, TypeError):  # numpy's arrays raise the latter
        return struct.pack(f"<{len(tokens)}i", *map(_narrow, tokens))


def _narrow(token: int) -> int:
    try:
        return token if 0 <= index(token) < 2**31 else INVALID_TOKEN_ID
    except TypeError:
        shown = repr(token)[:40].splitlines()[0]
        raise ValueError(f"token ids are integers, not {shown}; give a row of token ids") from None


def prompt_column(tokens: ArrayLike) -> bytes:
    """The same for a long text: fast for numpy arrays, which prompts often are."""
    ids = np.asarray(tokens)
    if ids.size == 0:
        return b""
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"token ids must be one row of integers, not {ids.ndim} dimensions of {ids.dtype}")
    if ids.dtype.itemsize > 4 or ids.dtype.kind == "u":
        ids = np.where((ids >= 0) & (ids < 2**31), ids, INVALID_TOKEN_ID)
    return ids.astype("<i4").tobytes()
