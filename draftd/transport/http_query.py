"""Query parameters, checked like the fields of a body."""

from enum import StrEnum
from typing import Any, TypeVar

from starlette.requests import Request

from draftd.ingest import IngestError
from draftd.ingest.post import refuse_unknown_fields

Choice = TypeVar("Choice", bound=StrEnum)


def query_fields(request: Request, known: tuple[str, ...]) -> dict[str, Any]:
    """Raises IngestError."""
    fields = dict(request.query_params)
    if len(fields) < len(request.query_params.multi_items()):
        raise IngestError("a query parameter is given twice")
    refuse_unknown_fields(fields, known)
    return fields


def choice(fields: dict[str, Any], name: str, default: Choice) -> Choice:
    """One of the words of `default`'s enum. Raises IngestError."""
    value = fields.get(name, default)
    try:
        return type(default)(value)
    except ValueError:
        raise IngestError(f"{name}: {value!r} should be one of {', '.join(type(default))}") from None
