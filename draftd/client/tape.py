"""Drafts matched in the client: a request's own text, and a ring of windows of text that the drafter sent for it.

docs/tapes.md states the rule, which a kernel on the engine's device can follow as well.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TokenArray = NDArray[np.int32]

LONGEST_MATCH = 64  # tokens that are compared
RING = 8  # arrivals whose windows are kept
CONTEXT = 16  # tokens of the own text before a draft that is kept as a window

SEPARATOR = -1  # no token: before each window


@dataclass(frozen=True, slots=True)
class Window:
    tokens: TokenArray  # int32[n]
    origin: tuple[int, int] | None  # the corpus that it is from and its version; None: a draft


class OwnText:
    """The committed text, in an array that grows."""

    def __init__(self, text: TokenArray) -> None:
        self._room = text.astype(np.int32)
        self.length = len(text)

    def append(self, tokens: Sequence[int]) -> None:
        end = self.length + len(tokens)
        if end > len(self._room):
            self._room = np.concatenate([self.tokens, np.empty(max(64, end), np.int32)])
        self._room[self.length : end] = tokens
        self.length = end

    def cut(self, length: int) -> None:
        self.length = min(length, self.length)

    @property
    def tokens(self) -> TokenArray:
        """A view, until more is appended."""
        return self._room[: self.length]


class Ring:
    """The windows of the latest arrivals, oldest first."""

    def __init__(self) -> None:
        self._arrivals: deque[list[Window]] = deque(maxlen=RING)
        self._joined: TokenArray | None = None

    def add(self, windows: list[Window]) -> None:
        """Of one arrival; the later one is preferred where two match equally far."""
        if windows:
            self._arrivals.append(windows)
            self._joined = None

    def keep(self, origins: Collection[tuple[int, int]]) -> int:
        """Drops the windows of any other corpus or version, and drafts; how many."""
        before = len(list(self))
        kept = [[window for window in windows if window.origin in origins] for windows in self._arrivals]
        self._arrivals = deque((windows for windows in kept if windows), maxlen=RING)
        self._joined = None
        return before - len(list(self))

    def __iter__(self) -> Iterator[Window]:
        for windows in self._arrivals:
            yield from windows

    @property
    def joined(self) -> TokenArray:
        """int32[n]: a separator before each window."""
        if self._joined is None:
            separator = np.array([SEPARATOR], np.int32)
            self._joined = np.concatenate([part for window in self for part in (separator, window.tokens)] or [_NONE])
        return self._joined


@dataclass(slots=True)
class Tape:
    """What one request is matched against."""

    own: OwnText
    ring: Ring


def match_in(source: TokenArray, text: TokenArray) -> tuple[int, int]:
    """(length, end) of the longest suffix of `text` that ends in `source` before a token, the last of equals; (0, 0)
    for none.

    `source[end - length : end]` is `text[-length:]`, and `source[end]` is what follows. At most LONGEST_MATCH
    tokens count."""
    ends = np.flatnonzero(source[:-1] == text[-1]) + 1 if len(text) else _NO_ENDS
    ends = ends[source[ends] != SEPARATOR]
    length = 0
    while len(ends):
        length, end = length + 1, int(ends[-1])
        if length == min(LONGEST_MATCH, len(text)):
            return length, end
        before = ends - length - 1
        ends = ends[(before >= 0) & (source[before] == text[-length - 1])]
        if not len(ends):
            return length, end
    return 0, 0


def drafted(own: OwnText, ring: Ring, length: int) -> list[int]:
    """Up to `length` tokens that continue the text, matched again where a window ends.

    The longer match wins, of equals that in the own text."""
    committed = own.length
    tokens: list[int] = []
    try:
        while len(tokens) < length:
            text = own.tokens
            own_length, own_end = match_in(text, text)
            tape_length, tape_end = match_in(ring.joined, text)
            if max(own_length, tape_length) == 0:
                break
            source, end = (text, own_end) if own_length >= tape_length else (ring.joined, tape_end)
            more = source[end : end + length - len(tokens)].tolist()
            if SEPARATOR in more:
                del more[more.index(SEPARATOR) :]
            tokens += more
            own.append(more)
    finally:
        own.cut(committed)
    return tokens


_NONE: TokenArray = np.zeros(0, np.int32)
_NO_ENDS: NDArray[np.intp] = np.zeros(0, np.intp)
