"""Labels: what a document is known by. In a history that is its request's id, in a corpus the id it was loaded with."""

LONGEST_LABEL = 256  # bytes: labels are kept in memory beside the tokens


def check_label(label: str) -> None:
    """Raises ValueError for one that can't be kept, or not be written into a line of a log."""
    if not label.isprintable():
        raise ValueError(f"id {label!a} has characters that can't be printed")
    if len(label.encode()) > LONGEST_LABEL:
        raise ValueError(f"id {label[:32]!a}... is longer than {LONGEST_LABEL} bytes")
