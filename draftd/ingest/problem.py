"""What is wrong with what was given."""


class IngestError(ValueError):
    """What was given can't become a corpus. The text is one line for who gave it: what, where, what to do."""


class TooLarge(IngestError):
    """It is more than a limit takes. The text has the figures."""
