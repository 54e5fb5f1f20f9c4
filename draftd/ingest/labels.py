"""Ids of documents."""

from draftd.ingest.problem import IngestError

LONGEST_LABEL = 256  # bytes: labels are kept in memory beside the tokens


def checked_label(place: str, label: str) -> str:
    """Raises IngestError for an id that can't be kept, or not be written into a line of a log."""
    if not label.isprintable():
        raise IngestError(f"{place}: id {label!a} has characters that can't be printed")
    if len(label.encode()) > LONGEST_LABEL:
        raise IngestError(f"{place}: the id is longer than {LONGEST_LABEL} bytes")
    return label
