"""Draft sources besides the indexes: one small interface, and the sources by name. docs/sources.md tells how to write
one."""

from draftd.sources.block_model import BlockModel, OneHotBlockModel
from draftd.sources.guarded import GuardedSource, Why
from draftd.sources.ngram import Ngram, propose_once
from draftd.sources.registry import REGISTRY, Registry, SourceError, register
from draftd.sources.source import Batch, Lane, Nature, Need, Outcome, Proposals, Shape, Source

__all__ = [
    "REGISTRY",
    "Batch",
    "BlockModel",
    "GuardedSource",
    "Lane",
    "Nature",
    "Need",
    "Ngram",
    "OneHotBlockModel",
    "Outcome",
    "Proposals",
    "Registry",
    "Shape",
    "Source",
    "SourceError",
    "Why",
    "propose_once",
    "register",
]
