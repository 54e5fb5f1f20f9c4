"""Ids of documents as given."""

from draftd.ingest.problem import IngestError
from draftd.wire import check_label


def checked_label(place: str, label: str) -> str:
    """The label. Raises IngestError for one that can't be kept."""
    try:
        check_label(label)
    except ValueError as error:
        raise IngestError(f"{place}: id {error}") from None
    return label
