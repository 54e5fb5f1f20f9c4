"""Corpora and histories as collections of segments: how they come, merge, go, and survive a restart."""

from draftd.corpora.ledger import Ledger
from draftd.corpora.library import CorpusLibrary, Deleted
from draftd.corpora.moving import Imported
from draftd.corpora.problem import OverLimit
from draftd.corpora.publishing import Publisher

__all__ = ["CorpusLibrary", "Deleted", "Imported", "Ledger", "OverLimit", "Publisher"]
