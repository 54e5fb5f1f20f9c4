"""Drafts matched in the client: a request's own text, and a ring of windows of text that the drafter sent for it.

docs/tapes.md states the rule, which a kernel on the engine's device can follow as well.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

TokenArray = NDArray[np.int32]

LONGEST_MATCH = 64  # tokens that are compared
MOST_POSITIONS = 1024  # that are compared in a source
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


@dataclass(frozen=True, slots=True)
class NewWindows:
    """What came for a request since it was last asked for what came, for whoever matches by itself."""

    arrivals: list[list[TokenArray]]  # oldest first; of each its windows, int32[n]
    starts: bool  # all that came before is to be forgotten: it was taken away, or is of another opening


class Ring:
    """The windows of the latest arrivals, oldest first."""

    def __init__(self) -> None:
        self._arrivals: deque[list[Window]] = deque(maxlen=RING)
        self._joined: TokenArray | None = None
        self._untaken = 0  # arrivals, the newest ones
        self._starts = True

    def add(self, windows: list[Window]) -> None:
        """Of one arrival; the later one is preferred where two match equally far."""
        if windows:
            self._arrivals.append(windows)
            self._joined = None
            self._untaken = min(self._untaken + 1, RING)

    def keep(self, origins: Collection[tuple[int, int]]) -> int:
        """Drops the windows of any other corpus or version, and drafts; how many."""
        before = len(list(self))
        kept = [[window for window in windows if window.origin in origins] for windows in self._arrivals]
        self._arrivals = deque((windows for windows in kept if windows), maxlen=RING)
        self._joined = None
        self._untaken, self._starts = len(self._arrivals), True
        return before - len(list(self))

    def take(self) -> NewWindows:
        """What was added since the last call. Behind what is dropped all that is left comes once more."""
        newest = list(self._arrivals)[len(self._arrivals) - self._untaken :]
        new = NewWindows([[window.tokens for window in windows] for windows in newest], self._starts)
        self._untaken, self._starts = 0, False
        return new

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

    `source[end - length : end]` is `text[-length:]`, and `source[end]` is what follows. At most LONGEST_MATCH tokens
    count, and of positions where two tokens and more agree the last MOST_POSITIONS: the work is bounded whatever the
    text repeats."""
    if not len(text) or len(source) < 2:
        return 0, 0
    last_agrees = source[:-1] == text[-1]
    if len(text) > 1:
        two_agree = last_agrees[1:] & (source[:-2] == text[-2])
        ends = _followed(source, np.flatnonzero(two_agree) + 2)[-MOST_POSITIONS:]
        if len(ends):
            return _longest(source, text[-LONGEST_MATCH:], ends)
    ends = _followed(source, np.flatnonzero(last_agrees) + 1)
    return (1, int(ends[-1])) if len(ends) else (0, 0)


def _followed(source: TokenArray, ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Those before a token of the same window."""
    followed: NDArray[np.intp] = ends[source[ends] != SEPARATOR]
    return followed


def _longest(source: TokenArray, suffix: TokenArray, ends: NDArray[np.intp]) -> tuple[int, int]:
    """The longest match with the suffix, the last of equals, and where it ends."""
    most = len(suffix)
    padded = np.concatenate([np.full(most, SEPARATOR, np.int32), source])  # so that as much is before each position
    agrees = (sliding_window_view(padded, most)[ends] == suffix)[:, ::-1]
    lengths = np.where(agrees.all(axis=1), most, agrees.argmin(axis=1))
    best = len(ends) - 1 - int(lengths[::-1].argmax())
    return int(lengths[best]), int(ends[best])


def drafted(text: TokenArray, windows: TokenArray, length: int) -> TokenArray:
    """int32[n], n <= `length`: what continues the text. `windows` as they are joined in a Ring.

    Matched once more, and no more, where a window ends early."""
    first = _continued(text, windows, length)
    if not 0 < len(first) < length:
        return first
    return np.concatenate([first, _continued(np.concatenate([text, first]), windows, length - len(first))])


def _continued(text: TokenArray, windows: TokenArray, length: int) -> TokenArray:
    """The longer match wins, of equals that in the own text, which goes on in the draft itself."""
    own_length, own_end = match_in(text, text)
    window_length, window_end = match_in(windows, text)
    if max(own_length, window_length) == 0:
        return _NONE
    if own_length >= window_length:
        more: TokenArray = text[own_end + np.arange(length) % (len(text) - own_end)]
        return more
    more = windows[window_end : window_end + length]
    ends = np.flatnonzero(more == SEPARATOR)
    return more[: ends[0]] if len(ends) else more


_NONE: TokenArray = np.zeros(0, np.int32)
