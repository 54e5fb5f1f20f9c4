"""The one error of this room."""


class IngestError(ValueError):
    """What was given can't become a corpus. The text is one line for who gave it: what, where, what to do."""
