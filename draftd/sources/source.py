"""What a draft source is: what it says of itself, what it is asked, what it answers.

A source guesses how the texts of running requests go on. It is shown each request's text as it grows, proposes nodes,
and hears what became of those that were verified. One instance sees the requests of one namespace only, and is never
called from two threads at once.
"""

import enum
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray


class Need(enum.Enum):
    """What a source can't do without."""

    TOKENS = "tokens"  # the requests' texts
    HIDDEN_STATES = "hidden states"  # of the target
    DEVICE = "device"  # an accelerator


class Lane(enum.Enum):
    """Where a source works."""

    NATIVE = "native"  # on the step's own thread: one call that does all of it without Python's lock, and never waits
    THREAD = "thread"  # on a thread of its own, which may wait for whatever it likes
    DEVICE = "device"  # the same, and that thread is the only one that touches the source's context on the device


class Shape(enum.Enum):
    """Of what a source proposes for a request."""

    CHAIN = "chain"
    TREE = "tree"


@dataclass(frozen=True, slots=True)
class Nature:
    """What a source says of itself; it holds for the life of the process."""

    needs: frozenset[Need]
    shape: Shape
    states_survival: bool
    """Whether nodes come with the probability that they and all their ancestors are accepted; otherwise the source is
    one-hot, and what its nodes are worth is learned from their outcomes."""
    lane: Lane
    call_micros: float
    """What a batch costs, about, in microseconds, besides its rows: it is not asked where less time is left."""
    row_micros: float
    """What each row adds to that."""

    def micros(self, rows: int) -> float:
        return self.call_micros + rows * self.row_micros


def begins(ends: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Where each row begins in a column whose rows end at `ends`."""
    rows = np.zeros_like(ends)
    rows[1:] = ends[:-1]
    return rows


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """Of the target, as columns: row i is entry i of each. Which layers they are of is between verifier and source.

    That at position p of a text is what token p + 1 was drawn from: of a text of n tokens the newest is at n - 2. A row
    has those that came since the source was last asked for it, as far as they were kept, or none; there may be a gap
    before them. They may be anything, infinite or of another width than before, too.
    """

    start: NDArray[np.uint32]  # [rows], position in the text of the row's first state
    end: NDArray[np.uint32]  # [rows], where the row's states end in values
    values: NDArray[bfloat16]  # [states, width]


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests to propose for, as columns: row i is entry i of each.

    The text of a row is, from `start` on, its part of `tokens`, and ends with it; before `start` it is what the source
    was shown last. `start` is never behind that, and lies before its end where tokens were taken back.
    """

    request: NDArray[np.uint64]  # [rows], each once; a number is never used for another request
    start: NDArray[np.uint32]  # [rows], position in the text
    token_end: NDArray[np.uint32]  # [rows], where the row's part of tokens ends
    tokens: NDArray[np.int32]
    hidden: HiddenStates | None = None  # for a source that needs them, and no other


@dataclass(frozen=True, slots=True)
class Proposals:
    """What a source answers, row by row as it was asked; a row may be empty."""

    node_end: NDArray[np.uint32]  # [rows], where the row's nodes end in the columns below
    tokens: NDArray[np.int32]  # [nodes], ids >= 0
    parents: NDArray[np.int16] | None = None  # [nodes], a node of the row, before it, or -1; None: each row is a chain
    survival: NDArray[np.float32] | None = None  # [nodes], in [0, 1], no node above its parent; None: one-hot


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the last proposals for some requests, and which requests are over."""

    request: NDArray[np.uint64]  # [rows]
    verified: NDArray[np.uint16]  # [rows], nodes that went through the target
    accepted: NDArray[np.uint16]  # [rows], of them those that were accepted, one below the other
    ended: NDArray[np.uint64]  # requests that are never asked for again; some may never have reached the source


class Source(Protocol):
    """The whole interface. `nature` belongs to the class, so that it can be read without making an instance.

    What a method raises costs the drafts of that call, and nothing else.
    """

    nature: Nature

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        """Continuations of the batch's texts, at most budget[i] nodes for row i."""

    def observe(self, outcome: Outcome) -> None:
        """Learns from what became of proposals, and forgets the requests that ended."""

    def close(self) -> None:
        """Gives everything back. Called once, last."""

    def memory(self) -> int:
        """Bytes held, on whatever device."""
