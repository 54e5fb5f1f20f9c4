"""Replays recorded traffic against a drafter and counts what each verify step yields."""

from draftd.replay.command import compare, replay_file, run
from draftd.replay.options import ReplayOptions
from draftd.replay.result import ReplayResult
from draftd.replay.runner import ReplayError
from draftd.replay.traces import TraceError

__all__ = ["ReplayError", "ReplayOptions", "ReplayResult", "TraceError", "compare", "replay_file", "run"]
