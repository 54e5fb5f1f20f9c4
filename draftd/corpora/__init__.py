"""External corpora: which there are, and how one comes and goes whole."""

from draftd.corpora.library import CorpusLibrary
from draftd.corpora.registry import CorpusRegistry, Publisher

__all__ = ["CorpusLibrary", "CorpusRegistry", "Publisher"]
