"""What is wrong with what was given."""


class IngestError(ValueError):
    """What was given can't become a corpus. The text is one line for who gave it: what, where, what to do."""

    def __init__(self, problem: str) -> None:
        # The name of a file may hold bytes that are no text, and the line is sent as JSON.
        super().__init__(problem.encode("utf-8", "backslashreplace").decode())


class TooLarge(IngestError):
    """It is more than a limit takes. The text has the figures."""
