"""Rebuilds of a collection: merges, and segments without some of their documents."""

import time
from dataclasses import dataclass, replace
from typing import Self

from draftd.corpora.collection import Collection
from draftd.corpora.merging import plan_merge
from draftd.corpora.problem import OverLimit
from draftd.corpora.segments import Held
from draftd.corpora.workshop import Workshop
from draftd.ingest import LoaderError, Selection
from draftd.observe import facts


@dataclass(frozen=True, slots=True)
class Gone:
    """What a deletion found."""

    documents: int = 0
    tokens: int = 0
    labels: frozenset[str] = frozenset()  # of these, if the selection names labels

    def __add__(self, other: Self) -> Self:
        return replace(
            self,
            documents=self.documents + other.documents,
            tokens=self.tokens + other.tokens,
            labels=self.labels | other.labels,
        )


def merge(workshop: Workshop, collection: Collection, dropped: Selection | None = None) -> None:
    """Until it has few enough segments, all of them mapped; what `dropped` picks is left out on the way.

    Raises OverLimit, LoaderError."""
    with workshop.turn:
        collection.settle()
        collection.map_all()
        while (run := plan_merge([held.file.tokens for held in collection.held])) is not None:
            started = time.monotonic()
            old = collection.held[run]
            _rebuild(workshop, collection, old, dropped)
            tokens = sum(held.file.tokens for held in old)
            facts.segments_merged(str(collection), len(old), tokens, time.monotonic() - started)


def drop_documents(workshop: Workshop, collection: Collection, dropped: Selection) -> Gone:
    """Rebuilds every segment with documents that `dropped` picks.

    A deletion must not fail because there is much else: without room for a segment before and after, drafts do without
    it meanwhile. Raises OverLimit, LoaderError."""
    gone = Gone()
    with workshop.turn:
        for held in collection.held:
            if held.segment is None:  # an earlier deletion had no room to map it again
                gone += _rebuild(workshop, collection, (held,), dropped)
            elif dropped.picks(held.segment.times(), held.segment.labelled).any():
                try:
                    gone += _rebuild(workshop, collection, (held,), dropped)
                except OverLimit:
                    with collection.unmapped(held):
                        gone += _rebuild(workshop, collection, (held,), dropped)
        collection.settle()
    return gone


def _rebuild(workshop: Workshop, collection: Collection, old: tuple[Held, ...], dropped: Selection | None) -> Gone:
    """What it has less."""
    before = Gone(sum(held.file.documents for held in old), sum(held.file.tokens for held in old))
    inputs = [(collection.folder.file(held.file), held) for held in old]
    try:
        with workshop.rebuilt(collection.owner, inputs, dropped) as (fresh, built):
            collection.replace(old, fresh)
            return Gone(before.documents - built.documents, before.tokens - built.tokens, built.dropped)
    except (LoaderError, OSError):
        if collection.removed:  # with the files that were being read
            return before
        raise
