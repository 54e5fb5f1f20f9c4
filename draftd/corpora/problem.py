"""The one error of this room; what is wrong with given documents is ingest's IngestError."""

from typing import Literal

Level = Literal["namespace", "tenant", "process"]


class OverLimit(RuntimeError):
    """A limit on bytes would be passed. The text has the limit's name, the figures, and what to do.

    `level`: whose limit it is; `missing`: bytes that would have to leave there first."""

    def __init__(self, text: str, level: Level, missing: int) -> None:
        super().__init__(text)
        self.level = level
        self.missing = missing
