"""Rebuilds of a collection: merges, and segments without some of their documents."""

import time

from draftd.corpora.collection import Collection
from draftd.corpora.merging import plan_merge
from draftd.corpora.problem import OverLimit
from draftd.corpora.segments import Held
from draftd.corpora.workshop import Workshop
from draftd.ingest import LoaderError, Selection
from draftd.observe import facts


def merge(workshop: Workshop, collection: Collection, dropped: Selection | None = None) -> None:
    """Until it has few enough segments; what `dropped` picks is left out on the way. Raises OverLimit, LoaderError."""
    with workshop.turn:
        while (run := plan_merge([held.file.tokens for held in collection.held])) is not None:
            started = time.monotonic()
            old = collection.held[run]
            _rebuild(workshop, collection, old, dropped)
            tokens = sum(held.file.tokens for held in old)
            facts.segments_merged(str(collection), len(old), tokens, time.monotonic() - started)


def drop_documents(workshop: Workshop, collection: Collection, dropped: Selection) -> tuple[int, int]:
    """Rebuilds every segment with documents that `dropped` picks; how many documents and tokens went.

    A deletion must not fail because there is much else: without room for a segment before and after, drafts do without
    it meanwhile. Raises OverLimit, LoaderError."""
    documents = tokens = 0
    with workshop.turn:
        for held in collection.held:
            if held.segment is None:  # an earlier deletion had no room to map it again
                tokens += _rebuild(workshop, collection, (held,), dropped)
            elif picked := int(dropped.picks(held.segment.times(), held.segment.labelled).sum()):
                documents += picked
                try:
                    tokens += _rebuild(workshop, collection, (held,), dropped)
                except OverLimit:
                    with collection.unmapped(held):
                        tokens += _rebuild(workshop, collection, (held,), dropped)
    return documents, tokens


def _rebuild(workshop: Workshop, collection: Collection, old: tuple[Held, ...], dropped: Selection | None) -> int:
    """How many tokens it has less."""
    before = sum(held.file.tokens for held in old)
    inputs = [(collection.folder.file(held.file), held) for held in old]
    try:
        with workshop.rebuilt(collection.owner, inputs, dropped) as fresh:
            collection.replace(old, fresh)
            return before - (fresh.segment.tokens if fresh is not None else 0)
    except (LoaderError, OSError):
        if collection.removed:  # with the files that were being read
            return before
        raise
