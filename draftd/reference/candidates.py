"""The possible continuations of one node, slow and readable: the twin of cpp/src/draft/candidates.

Who knows a token, and how well: contexts, then the pairs of the node's last token, then the frequent tokens of the
history. What each of them says becomes the number of a cell; draftd.reference.model knows what such a cell is worth.

The contexts and the frequent tokens are blended by prediction by partial matching too (PPM, method C: Moffat 1990). A
context of length L whose followers were counted `total` times, `distinct` different ones, is trusted with

    total / (total + distinct / (1 + L / 16)) * L / (L + 1)

and passes the rest on to the next shorter one: long contexts surprise less often than method C says, and short ones
coincide by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from draftd.reference import cells
from draftd.reference.cells import Proposer, Role, Standing
from draftd.reference.events import Source
from draftd.reference.evidence import Context
from draftd.reference.logistic import stretch
from draftd.reference.model import BLEND, INPUTS, Candidate

MOST = 20
"""Later ones are left out."""

FOLLOWERS = 8
"""Of a context, the likeliest."""

MOST_DRAFTED = 8
"""Of a draft source: there is to be room for others."""

PAIRS = cells.LEVELS
CONSTANT = BLEND + 1
DRAFTED = CONSTANT + 1
"""Inputs of the model, behind those of the contexts."""


class Counted(Protocol):
    """Text whose frequent tokens fill nodes."""

    @property
    def tokens(self) -> int: ...
    @property
    def distinct_tokens(self) -> int: ...
    def frequent_tokens(self) -> list[tuple[int, int]]: ...


@dataclass
class _Known:
    """What is known of one token."""

    source: int
    proposer: Proposer
    cells: list[int]
    claim: float = 0.0  # by the blend
    first: int = 0  # number of the longest context that has it
    knowing: int = 0  # contexts that have it
    standing: Standing = Standing.ABSENT


class Candidates:
    """At most 20, in the order first seen."""

    def __init__(self) -> None:
        self.unclaimed = 1.0
        """What the contexts leave to tokens that they don't know."""

        self._known: dict[int, _Known] = {}
        self._contexts: list[tuple[int, int, int]] = []
        self._unknown = [cells.NOTHING] * INPUTS
        """The cells of a token that nobody knows."""

        self._unknown[CONSTANT] = cells.CONSTANT

    def sources(self) -> list[int]:
        """Of each candidate the code of the source that knew it first: the longest context's, if one has it."""
        return [known.source for known in self._known.values()]

    def add_drafted(self, children: Sequence[tuple[int, int]], together: int, depth: int) -> None:
        """Before all others: at most MOST_DRAFTED tokens that a draft source has as nodes of that depth, and what it
        claims of each, and of all of them together."""
        self._say_of_others(DRAFTED, cells.undrafted(together, depth))
        for token, claim in children:
            known = self._known.setdefault(
                token, _Known(Source.DRAFT_SOURCE, Proposer.DRAFT_SOURCE, self._unknown.copy())
            )
            known.cells[DRAFTED] = cells.drafted(claim, depth)

    def add_context(self, context: Context) -> None:
        """The longest first."""
        length, total = context.length, float(context.total)
        escape = context.distinct / (1.0 + length / 16.0)
        confidence = total / (total + escape) * (length / (length + 1.0))
        weight = self.unclaimed * confidence / total
        self.unclaimed *= 1.0 - confidence

        here = len(self._contexts)
        classes = cells.context(context.origin, int(length), context.total)
        self._contexts.append(classes)
        self._say_of_others(here, cells.missed(classes, context.distinct))
        for rank, follower in enumerate(context.followers[:FOLLOWERS]):
            known = self._find(follower.token, context.source, Proposer.CONTEXT)
            if known is None:
                continue  # the next may be known already
            fresh = known.knowing == 0  # to contexts
            if fresh:
                known.source, known.first = context.source, here
                known.proposer = Proposer.BOTH if known.proposer is Proposer.DRAFT_SOURCE else Proposer.CONTEXT
            known.knowing += 1
            known.claim += weight * follower.count
            if here == 0:
                known.standing = Standing.LIKELIEST if rank == 0 else Standing.PRESENT
                role = Role.AT_LONGEST
            else:
                role = Role.NEW if fresh else Role.KNOWN
            share = cells.share_class(follower.count, context.total)
            latest = follower.token == context.latest
            known.cells[here] = cells.known(classes, share, latest, follower.recency, role)

    def add_pairs(self, slot: int, source: int, followers: Sequence[tuple[int, np.float32]]) -> None:
        """`slot` 0: what followed the node's token in the request, with its weight; 1: in a history."""
        whole = sum((weight for _, weight in followers), np.float32(0))
        self._say_of_others(PAIRS + slot, cells.not_paired(slot, len(followers)))
        for place, (token, weight) in enumerate(followers):
            known = self._find(token, source, Proposer.PAIRS)
            if known is None:
                continue  # the next may be known already
            known.cells[PAIRS + slot] = cells.paired(slot, place, cells.weight_share_class(weight / whole), whole)

    def add_frequent(self, text: Counted) -> None:
        """Shares out what is unclaimed, by method C too: a short text's frequencies say little."""
        weight = self.unclaimed / float(text.tokens + text.distinct_tokens) if text.tokens else 0.0
        for rank, (token, count) in enumerate(text.frequent_tokens()):
            fresh = token not in self._known
            known = self._find(token, Source.FILL, Proposer.FREQUENT)
            if known is None:
                continue  # the next may be known already
            known.claim += weight * count
            if fresh:
                known.cells[CONSTANT] = cells.frequent(rank)

    def _find(self, token: int, source: int, proposer: Proposer) -> _Known | None:
        """What is known of a token, maybe nothing yet; None: there is no room for another one."""
        if token not in self._known:
            if len(self._known) == MOST:
                return None
            self._known[token] = _Known(source, proposer, self._unknown.copy())
        return self._known[token]

    def _say_of_others(self, place: int, cell: int) -> None:
        """An input of those of which nothing else will be said."""
        for others in (self._unknown, *(known.cells for known in self._known.values())):
            others[place] = cell

    def described(self) -> list[Candidate]:
        """As the model sees them."""
        blends = stretch(np.array([known.claim for known in self._known.values()], np.float32))
        longest = self._contexts[0] if self._contexts else None
        return [
            Candidate(
                token,
                blend,
                tuple(known.cells),
                cells.agreement(known.first, known.knowing, len(self._contexts)),
                cells.standing(known.proposer, longest, known.standing),
            )
            for (token, known), blend in zip(self._known.items(), blends, strict=True)
        ]
