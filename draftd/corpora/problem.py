"""The one error of this room; what is wrong with given documents is ingest's IngestError."""


class OverLimit(RuntimeError):
    """A limit on bytes would be passed. The text has the limit's name, the figures, and what to do."""
