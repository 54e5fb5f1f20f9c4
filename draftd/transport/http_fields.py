"""The fields of a JSON body, checked against a model; what is wrong names the field."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from draftd.ingest import IngestError
from draftd.ingest.post import json_object, refuse_unknown_fields

Item = TypeVar("Item")
ListOf = Annotated[list[Item], Field(fail_fast=True)]  # else each wrong item is remembered, in a kilobyte


class Fields(BaseModel):
    """Of a call."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Call = TypeVar("Call", bound=Fields)


def parsed(body: bytes, call: type[Call]) -> Call:
    """Raises IngestError that names the field."""
    fields = json_object(body)
    refuse_unknown_fields(fields, tuple(call.model_fields))
    try:
        return call(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise IngestError(f"{place}: {problem}" if place else problem) from None


def token_ids(name: str, ids: Sequence[int]) -> NDArray[np.int32]:
    """int32[n]. Raises IngestError for an id that can't be one."""
    if ids and not (min(ids) >= 0 and max(ids) < 2**31):
        position, token = next((at, token) for at, token in enumerate(ids) if not 0 <= token < 2**31)
        raise IngestError(f"{name}: token {position} is {token}, outside [0, {2**31})")
    return np.array(ids, "<i4")
