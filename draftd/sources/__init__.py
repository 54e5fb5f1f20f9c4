"""Draft sources besides the indexes: one small interface, and the sources by name. docs/sources.md tells how to write
one."""

from draftd.sources.guarded import GuardedSource, Why
from draftd.sources.ngram import Ngram, propose_once
from draftd.sources.registry import REGISTRY, Registry, SourceError, register
from draftd.sources.source import Batch, HiddenStates, Lane, Nature, Need, Outcome, Proposals, Shape, Source

REGISTRY.offer("draft_model", "draftd.sources.draft_model:DraftModel", extra="models")
REGISTRY.offer("block", "draftd.sources.block_model:BlockModel", extra="models")
REGISTRY.offer("block_one_hot", "draftd.sources.block_model:OneHotBlockModel", extra="models")

__all__ = [
    "REGISTRY",
    "Batch",
    "GuardedSource",
    "HiddenStates",
    "Lane",
    "Nature",
    "Need",
    "Ngram",
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
