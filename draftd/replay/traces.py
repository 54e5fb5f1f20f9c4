"""Recorded traffic: one JSON object per line, optionally gzipped."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from draftd.wire import check_label

TokenArray = NDArray[np.int32]


class TraceError(ValueError):
    """A recording that cannot be replayed. The message names file and line."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as a target model answered it."""

    id: str  # printable, at most 256 bytes in UTF-8
    prompt: TokenArray
    output: TokenArray  # at least one token: the first comes from prefill
    group: str  # same prompt, problem or session; the request's id where the recording names none


def workload_name(path: Path) -> str:
    """The file's name without folder and endings: `agent_swe` for `x/agent_swe.jsonl.gz`."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def read_trace(path: Path) -> Iterator[RecordedRequest]:
    """The requests of one file in arrival order, at least one. Blank lines are skipped. Raises TraceError at the
    first line that is none."""
    requests = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for line_number, line in enumerate(lines, start=1):
                if not line.isspace():
                    requests += 1
                    yield _parse(line, f"{path}:{line_number}")
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if requests == 0:
        raise TraceError(f"{path}: holds no request")


def _parse(line: bytes, where: str) -> RecordedRequest:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise TraceError(f"{where}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise TraceError(f"{where}: not a JSON object")
    request_id = record.get("id")
    if not isinstance(request_id, str) or not request_id:
        raise TraceError(f"{where}: `id` must be a string that is not empty")
    try:
        check_label(request_id)
    except ValueError as error:
        raise TraceError(f"{where}: `id`: {error}") from None
    output = _tokens(record, "output_token_ids", where)
    if not len(output):
        raise TraceError(f"{where}: `output_token_ids` is empty: there is nothing to verify")
    group = record.get("group", request_id)
    if not isinstance(group, str):
        raise TraceError(f"{where}: `group` must be a string")
    return RecordedRequest(
        id=request_id,
        prompt=_tokens(record, "prompt_token_ids", where),
        output=output,
        group=group,
    )


def _tokens(record: dict[str, Any], field: str, where: str) -> TokenArray:
    values = record.get(field)
    if not isinstance(values, list) or not all(type(value) is int and 0 <= value < 2**31 - 1 for value in values):
        raise TraceError(f"{where}: `{field}` must be a list of token ids, whole numbers from 0 to 2^31-2")
    return np.array(values, dtype=np.int32)
