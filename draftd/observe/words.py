"""Counts in words, for log lines and replies."""


def counted(count: int, one: str, many: str = "") -> str:
    """`1 document`, `2 documents`; `many` where it isn't `one` and an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
