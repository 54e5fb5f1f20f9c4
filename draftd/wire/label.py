"""Labels: what a document is known by. In a history that is its request's id, in a corpus the id it was loaded with.

Names of groups keep the same rule."""

LONGEST_LABEL = 256  # bytes: labels are kept in memory beside the tokens


def check_label(label: str) -> None:
    """Raises ValueError for one that can't be kept, or not be written into a line of a log."""
    if not label.isprintable():
        raise ValueError(f"{label!a} has characters that can't be printed")
    if len(label.encode()) > LONGEST_LABEL:
        raise ValueError(f"{label[:32]!a}... is longer than {LONGEST_LABEL} bytes")
