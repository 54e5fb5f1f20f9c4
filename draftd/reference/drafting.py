"""What the rows of a step are answered, slow and readable: from sessions to wishes, from trees to tails."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from draftd.reference.best_count import StepCost
from draftd.reference.columns import StepColumns, TailRow, Tails, pack_tails, unpack_drafted, unpack_tails, unpacked
from draftd.reference.draft import DraftedNode, Growth, Wish, draft
from draftd.reference.events import Delivered, Reason, Source, Status, Tail, TailKind
from draftd.reference.figures import Figures
from draftd.reference.indexing import Entry, Indexing
from draftd.reference.model import Model
from draftd.reference.rest import PaceRules
from draftd.reference.session import allowed_nodes, apply, paced_nodes


class Drafting(Indexing):
    """Answers the rows of a step whose commits have been carried out."""

    def __init__(self, in_flight: bool, max_nodes: int, start: Model, pace: PaceRules) -> None:
        super().__init__(in_flight=in_flight)
        self._max_nodes = max_nodes
        self._start = start
        self._pace = pace
        self._figures = Figures()

    def redraft(
        self,
        verifier: int,
        columns: StepColumns,
        tails: Tails,
        node_end: bytes,
        tokens: bytes,
        parents: bytes,
        survival: bytes,
        budget: int,
        min_survival: float,
        cost: StepCost | None = None,
    ) -> Tails:
        """Drafts once more for the rows of a step, that was answered with `tails`."""
        drafted = unpack_drafted(node_end, tokens, parents, survival)
        entries, rows = [], []
        names = zip(unpacked("<u4", columns.request), unpacked("<u4", columns.epoch), strict=True)
        for (handle, epoch), row in zip(names, unpack_tails(tails), strict=True):
            self._figures.count_tail(row.tree.parents, row.reason, times=-1)
            entry, reason = self._entries.get((verifier, handle)), row.reason
            if row.status is not Status.OK:
                entry = None
            elif entry is None or (entry.session.epoch, len(entry.session.tokens)) != (epoch, row.base):
                entry, row = None, TailRow(Status.NEED_SYNC, Reason.REFUSED, detail=row.detail, accepted=row.accepted)
                self._figures.count_status(row.status)
            elif row.allowed:
                reason = Reason.NOT_EMPTY
            entries.append(entry)
            rows.append(replace(row, reason=reason if entry else row.reason))
        return self._draft(entries, rows, drafted, budget, min_survival, cost)

    def texts(self, verifier: int, request: bytes, epoch: bytes, start: bytes) -> tuple[bytes, bytes]:
        """The text of each request from there on: where the row ends in the tokens, and these."""
        ends: list[int] = []
        tokens: list[int] = []
        for handle, of_epoch, first in zip(
            *(unpacked("<u4", column) for column in (request, epoch, start)), strict=True
        ):
            entry = self._entries.get((verifier, handle))
            if entry and entry.session.epoch == of_epoch:
                tokens += entry.session.text[first:]
            ends.append(len(tokens))
        return np.array(ends, "<u4").tobytes(), np.array(tokens, "<i4").tobytes()

    def _draft(
        self,
        entries: Sequence[Entry | None],
        rows: Sequence[TailRow],
        drafted: Sequence[Sequence[DraftedNode]],
        budget: int,
        min_survival: float,
        cost: StepCost | None,
    ) -> Tails:
        """Of rows with the nodes that they may have, and what a draft source has for them."""
        wishes = [
            self._wish(entry, row.allowed, nodes) if entry and row.reason is Reason.NOT_EMPTY else Wish(text=())
            for entry, row, nodes in zip(entries, rows, drafted, strict=True)
        ]
        wanted = sum(wish.max_nodes for wish in wishes)
        drafts = draft(wishes, budget or wanted, min_survival, cost, len(rows))
        answered = []
        for entry, row, growth in zip(entries, rows, drafts.growths, strict=True):
            is_empty = row.reason is Reason.NOT_EMPTY and not growth.tree.tokens
            reason = growth.empty_because(drafts.left_out) if is_empty else row.reason
            answered.append(self._deliver(entry, replace(row, reason=reason), growth))
        return pack_tails(answered)

    def _allowed(self, entry: Entry | None, asked: int, most_nodes: int | None) -> tuple[int, Reason]:
        if entry is None:
            return 0, Reason.REFUSED
        if most_nodes is None:
            return allowed_nodes(entry.session, asked)
        entry.session, nodes, reason = paced_nodes(entry.session, asked, most_nodes, self._pace)
        return nodes, reason

    def _wish(self, entry: Entry, nodes: int, drafted: Sequence[DraftedNode]) -> Wish:
        session, options = entry.session, entry.session.options
        return Wish(
            text=session.text,
            prompt=session.prompt_length,
            live=[(Source.OWN_TEXT, entry.own.index), *entry.namespace.live(options, entry.reads)],
            sealed=entry.namespace.sealed(options),
            fill=None if options.hide_history else entry.namespace.history.largest_part(),
            drafted=drafted,
            own_pairs=entry.own.pairs,
            history_pairs=entry.namespace.pairs(options),
            model=entry.namespace.learned or self._start,
            stop_ids=tuple(options.stop_ids),
            vocabulary=options.vocabulary,
            max_nodes=nodes,
            chain=options.chain,
            policy=options.policy,
        )

    def _deliver(self, entry: Entry | None, row: TailRow, growth: Growth) -> TailRow:
        tree = growth.tree
        self._figures.count_tail(tree.parents, row.reason)
        if entry is None:
            return replace(row, base=0, kind=TailKind.TREE, tree=tree)
        base = len(entry.session.tokens)
        tail = Tail(base, tuple(tree.tokens), tuple(tree.parents), growth.lesson)
        delivered = apply(entry.session, Delivered(tail))
        if delivered.session:
            entry.session = delivered.session
        kind = TailKind.CHAIN if entry.session.options.chain else TailKind.TREE
        return replace(row, base=base, kind=kind, tree=tree)
