"""The engine: wire messages in, wire messages out; no socket, no event loop."""

from draftd.engine.explain import LONGEST_CONTEXT, Evidence, Explainer, Explanation
from draftd.engine.namespaces import LimitExceeded, TokenizerMismatch, UnknownCorpus, UnknownNamespace
from draftd.engine.statistics import Statistics
from draftd.engine.step import Answer, Engine

__all__ = [
    "LONGEST_CONTEXT",
    "Answer",
    "Engine",
    "Evidence",
    "Explainer",
    "Explanation",
    "LimitExceeded",
    "Statistics",
    "TokenizerMismatch",
    "UnknownCorpus",
    "UnknownNamespace",
]
