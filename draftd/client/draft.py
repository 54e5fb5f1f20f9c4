"""What the verifier gets: one draft per request, cut lazily out of the reply's columns."""

from array import array
from collections.abc import Collection, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from draftd import native
from draftd.client.columns import u32_column
from draftd.wire import DraftTail, Reason, Source, Status, TailKind

KNOWN_KINDS = bytes([TailKind.TREE, TailKind.CHAIN])  # tapes have a message of their own
_TOKEN, _PARENT, _SURVIVAL, _SOURCE = np.dtype("<i4"), np.dtype("<i2"), np.dtype("<f4"), np.dtype("u1")
Code = TypeVar("Code", bound=IntEnum)
Key = TypeVar("Key")


def known(catalogue: type[Code], number: int, otherwise: Code) -> Code:
    """The code of that number, or `otherwise` for one that only a later drafter knows."""
    try:
        return catalogue(number)
    except ValueError:
        return otherwise


class MalformedTailError(ValueError):
    """The columns of a DraftTail disagree; the message says which."""


class Tails:
    """The columns of one DraftTail, as they came. Rows are in the order of the commit they answer."""

    __slots__ = ("base", "epoch", "kind", "node_end", "parents", "reason", "source", "status", "survival", "tokens")

    def __init__(self, tail: DraftTail) -> None:
        """The columns fit together: this client made them."""
        self.epoch = tail.epoch
        self.base = tail.base
        self.status = tail.status
        self.reason = tail.reason
        self.kind = tail.kind
        self.node_end = array("I", tail.node_end)
        self.tokens = tail.tokens
        self.parents = tail.parents
        self.survival = tail.survival
        self.source = tail.source

    @classmethod
    def received(cls, tail: DraftTail, rows: tuple[bytes, bytes], vocabulary_size: int) -> "Tails":
        """What a drafter sent. Raises MalformedTailError where its rows are not those asked for, handle and epoch
        columns, where columns disagree, and where a verifier would take harm: by a node that is no token of the
        vocabulary (0: of unknown size), or does not come after its parent."""
        try:
            tails = cls(tail)
            # By position: names cost more than the call.
            native.check_tails(
                tails.epoch,
                tails.base,
                tails.status,
                tails.reason,
                tails.kind,
                tail.node_end,
                tails.tokens,
                tails.parents,
                tails.survival,
                tails.source,
                vocabulary_size,
            )
        except ValueError as error:
            raise MalformedTailError(str(error)) from None
        if (tail.request, tails.epoch) != rows:
            raise MalformedTailError("its rows are not those that were asked for")
        return tails

    def unknown_kinds(self) -> int:
        """How many rows are of a kind that this client does not know."""
        return len(self.kind.translate(None, KNOWN_KINDS))

    def drafts(self) -> "list[Draft]":
        """One of each row; empty where the row is of an unknown kind."""
        drafts: list[Draft] = []
        begin = 0
        for row, end in enumerate(self.node_end):
            drafts.append(Draft(self, row, begin, end - begin if self.kind[row] in KNOWN_KINDS else 0))
            begin = end
        return drafts

    @property
    def nodes(self) -> int:
        """Of all rows."""
        return self.node_end[-1] if self.node_end else 0

    @classmethod
    def joined(cls, parts: Sequence["Tails"]) -> "Tails":
        """The rows of all parts, in their order."""
        firsts = accumulate((part.nodes for part in parts), initial=0)
        ends = [first + end for first, part in zip(firsts, parts, strict=False) for end in part.node_end]
        columns = {
            column: b"".join(getattr(part, column) for part in parts)
            for column in cls.__slots__
            if column != "node_end"
        }
        return cls(DraftTail(node_end=u32_column(ends), **columns))

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

    __slots__ = ("_begin", "_count", "_row", "_tails")

    def __init__(self, tails: Tails, row: int, begin: int, count: int) -> None:
        self._tails = tails
        self._row = row
        self._begin = begin  # place of its first node in the columns
        self._count = count  # nodes

    def first(self, most: int) -> "Draft":
        """The same without nodes beyond the first `most`; what remains is a tree, as parents come first."""
        return Draft(self._tails, self._row, self._begin, min(most, self._count))

    @property
    def tokens(self) -> NDArray[np.int32]:
        """int32[n]"""
        return np.frombuffer(self._tails.tokens, _TOKEN, self._count, 4 * self._begin)

    @property
    def parents(self) -> NDArray[np.int16]:
        """int16[n]: index of the parent node, -1 for the committed text."""
        return np.frombuffer(self._tails.parents, _PARENT, self._count, 2 * self._begin)

    @property
    def survival(self) -> NDArray[np.float32]:
        """float32[n]: probability that the node and all its ancestors are accepted."""
        return np.frombuffer(self._tails.survival, _SURVIVAL, self._count, 4 * self._begin)

    @property
    def source(self) -> NDArray[np.uint8]:
        """uint8[n]: where the best evidence for the node came from (wire.Source)."""
        return np.frombuffer(self._tails.source, _SOURCE, self._count, self._begin)

    @property
    def kind(self) -> TailKind:
        return known(TailKind, self._tails.kind[self._row], TailKind.TREE)

    @property
    def base(self) -> int:
        """Committed length (prompt and output) that the draft continues, in tokens."""
        return int.from_bytes(self._tails.base[4 * self._row : 4 * self._row + 4], "little")

    @property
    def epoch(self) -> int:
        return int.from_bytes(self._tails.epoch[4 * self._row : 4 * self._row + 4], "little")

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
        return self._count

    def __repr__(self) -> str:
        if not len(self):
            reason = self.reason
            why = f"{reason.name}: {self.status.name}" if reason is Reason.REFUSED else reason.name
            return f"Draft(empty: {why}, base={self.base}, epoch={self.epoch})"
        sources = "/".join(sorted({Source(number).name for number in self.source.tolist()}))
        return f"Draft({self.kind.name} of {len(self)}: {self.tokens.tolist()}, base={self.base}, from {sources})"


def drafts_of(requests: Collection[Key], tails: Tails) -> dict[Key, Draft]:
    """One draft per request, in the order of the rows."""
    return dict(zip(requests, tails.drafts(), strict=True))
