"""What the verifier gets: one draft per request, cut lazily out of the reply's columns."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from draftd.client.columns import u32_column
from draftd.wire import DraftTail, Reason, Source, Status, TailKind

KNOWN_KINDS = bytes(TailKind)
Code = TypeVar("Code", bound=IntEnum)


def known(catalogue: type[Code], number: int, otherwise: Code) -> Code:
    """The code of that number, or `otherwise` for one that only a later drafter knows."""
    try:
        return catalogue(number)
    except ValueError:
        return otherwise


class MalformedTailError(ValueError):
    """The columns of a DraftTail disagree; the message says which."""


class Tails:
    """The columns of one DraftTail as arrays. Rows are in the order of the commit they answer."""

    __slots__ = ("base", "epoch", "kind", "node_end", "parents", "reason", "source", "status", "survival", "tokens")

    def __init__(self, tail: DraftTail) -> None:
        self.status = tail.status
        self.reason = tail.reason
        self.kind = tail.kind
        try:
            self.epoch = np.frombuffer(tail.epoch, "<u4")
            self.base = np.frombuffer(tail.base, "<u4")
            self.node_end: list[int] = np.frombuffer(tail.node_end, "<u4").tolist()
            self.tokens = np.frombuffer(tail.tokens, "<i4")
            self.parents = np.frombuffer(tail.parents, "<i2")
            self.survival = np.frombuffer(tail.survival, "<f4")
            self.source = np.frombuffer(tail.source, "u1")
        except ValueError as error:
            raise MalformedTailError(f"a column is cut off: {error}") from None
        self._check()

    def _check(self) -> None:
        rows, node_end = len(self.base), self.node_end
        if not rows == len(self.epoch) == len(self.status) == len(self.reason) == len(self.kind) == len(node_end):
            raise MalformedTailError(f"its row columns are not of {rows} rows each")
        nodes = node_end[-1] if rows else 0
        if not nodes == len(self.tokens) == len(self.parents) == len(self.survival) == len(self.source):
            raise MalformedTailError(f"its node columns are not of {nodes} nodes each")
        if sorted(node_end) != node_end:
            raise MalformedTailError("its rows do not follow each other")

    def unknown_kinds(self) -> int:
        """How many rows are of a kind that this client does not know."""
        return len(self.kind.translate(None, KNOWN_KINDS))

    @classmethod
    def empty(cls, reason: Reason, epochs: Sequence[int], bases: Sequence[int], status: Status = Status.OK) -> "Tails":
        """One empty tail per request, all for the same reason."""
        rows = len(epochs)
        return cls(
            DraftTail(
                epoch=u32_column(epochs),
                base=u32_column(bases),
                status=bytes([status]) * rows,
                reason=bytes([reason]) * rows,
                kind=bytes(rows),
                node_end=bytes(4 * rows),
            )
        )


class Draft:
    """A guess at how the request goes on: a tree of tokens below its committed text.

    Nodes are in an order in which parents come before children (`parents[i] < i`; -1 is the committed
    text itself), likely ones first. The arrays are read-only views of the reply.
    """

    __slots__ = ("_row", "_tails")

    def __init__(self, tails: Tails, row: int) -> None:
        self._tails = tails
        self._row = row

    def _nodes(self) -> slice:
        row, node_end = self._row, self._tails.node_end
        if self._tails.kind[row] not in KNOWN_KINDS:
            return slice(0, 0)
        return slice(node_end[row - 1] if row else 0, node_end[row])

    @property
    def tokens(self) -> NDArray[np.int32]:
        """int32[n]"""
        return self._tails.tokens[self._nodes()]

    @property
    def parents(self) -> NDArray[np.int16]:
        """int16[n]: index of the parent node, -1 for the committed text."""
        return self._tails.parents[self._nodes()]

    @property
    def survival(self) -> NDArray[np.float32]:
        """float32[n]: probability that the node and all its ancestors are accepted."""
        return self._tails.survival[self._nodes()]

    @property
    def source(self) -> NDArray[np.uint8]:
        """uint8[n]: where the best evidence for the node came from (wire.Source)."""
        return self._tails.source[self._nodes()]

    @property
    def kind(self) -> TailKind:
        return known(TailKind, self._tails.kind[self._row], TailKind.TREE)

    @property
    def base(self) -> int:
        """Committed length (prompt and output) that the draft continues, in tokens."""
        return int(self._tails.base[self._row])

    @property
    def epoch(self) -> int:
        return int(self._tails.epoch[self._row])

    @property
    def reason(self) -> Reason:
        """Why the draft is empty; NOT_EMPTY when it is not."""
        if self._tails.kind[self._row] not in KNOWN_KINDS:
            return Reason.NOT_ASKED
        return known(Reason, self._tails.reason[self._row], Reason.NO_MATCH if not len(self) else Reason.NOT_EMPTY)

    @property
    def status(self) -> Status:
        """What became of the commit; explains Reason.REFUSED."""
        return known(Status, self._tails.status[self._row], Status.INTERNAL)

    def __len__(self) -> int:
        nodes = self._nodes()
        return int(nodes.stop - nodes.start)

    def __repr__(self) -> str:
        if not len(self):
            return f"Draft(empty: {self.reason.name}, base={self.base}, epoch={self.epoch})"
        sources = "/".join(sorted({Source(number).name for number in self.source.tolist()}))
        return f"Draft({self.kind.name} of {len(self)}: {self.tokens.tolist()}, base={self.base}, from {sources})"
