"""The engine: wire messages in, wire messages out; no socket, no event loop."""

from draftd.engine.namespaces import LimitExceeded
from draftd.engine.statistics import Statistics
from draftd.engine.step import Answer, Engine

__all__ = ["Answer", "Engine", "LimitExceeded", "Statistics"]
