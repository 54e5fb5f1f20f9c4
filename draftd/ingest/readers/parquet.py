"""Parquet files: a column `text` or `token_ids`, and perhaps a column `id`; a row is a document."""

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from draftd.ingest.documents import RUN_TOKENS, Ids, Piece, Text
from draftd.ingest.labels import checked_label
from draftd.ingest.problem import IngestError, TooLarge
from draftd.ingest.readers.limits import BYTES_A_TOKEN, LONGEST_TEXT, ReadLimits, too_many_tokens
from draftd.ingest.readers.plain import plain_file

ROWS = 4096  # read at once
INSTALL = "install it with: pip install 'draftd[parquet]'"


def read_parquet(file: IO[bytes], limits: ReadLimits) -> Iterator[Piece]:
    """Raises IngestError."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise IngestError(f"a Parquet file needs the pyarrow package; {INSTALL}") from None
    try:
        with plain_file(file, limits.unpacked_bytes) as plain:
            table = parquet.ParquetFile(plain)
            schema, types = table.schema_arrow, pyarrow.types
            columns = _columns(schema, types)
            rows_at_once = _rows_at_once(table.metadata, limits)
            # A string that many rows have stays one: a small file can hold very much text.
            strings = [name for name in columns if _is_string(schema.field(name).type, types)]
            table = parquet.ParquetFile(plain, read_dictionary=strings)
            first = 0
            for rows in table.iter_batches(rows_at_once, columns=columns, use_threads=False):
                yield from _documents(rows, first)
                first += rows.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise IngestError(f"the Parquet file is damaged: {' '.join(str(error).split())}") from None


def _columns(schema: Any, types: Any) -> list[str]:
    """Names of the columns to read, checked for their types."""
    given = [name for name in ("text", "token_ids") if name in schema.names]
    if len(given) != 1:
        raise IngestError(f"the Parquet file should have a column text or token_ids; it has {', '.join(schema.names)}")
    kind = schema.field(given[0]).type
    if given == ["text"] and not _is_string(kind, types):
        raise IngestError(f"column text should hold strings, holds {kind}")
    lists = types.is_list(kind) or types.is_large_list(kind)
    if given == ["token_ids"] and not (lists and types.is_integer(kind.value_type)):
        raise IngestError(f"column token_ids should hold lists of integers, holds {kind}")
    return given + (["id"] if "id" in schema.names else [])


def _is_string(kind: Any, types: Any) -> bool:
    values = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(values) or types.is_large_string(values))


def _rows_at_once(metadata: Any, limits: ReadLimits) -> int:
    """Fewer where lists are long. Raises TooLarge for a bomb."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > limits.unpacked_bytes:
        raise TooLarge(
            f"the Parquet file holds {unpacked} bytes: {BYTES_A_TOKEN} are taken for each token of corpora.max_tokens"
        )
    lengths: list[int] = [
        column.num_values
        for group in groups
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema.partition(".")[0] == "token_ids"
    ]
    # A list without an element counts as one; so do runs of equal ids, of which a few bytes can be many.
    if sum(lengths) > limits.max_tokens + metadata.num_rows:
        raise too_many_tokens("token_ids", limits.max_tokens)
    return max(1, min(ROWS, RUN_TOKENS * int(metadata.num_rows) // max(1, sum(lengths))))


def _documents(rows: Any, first: int) -> Iterator[Piece]:
    def place(row: int) -> str:
        return f"row {first + row + 1}"

    labels = _labels(rows, place) if "id" in rows.schema.names else None
    documents = rows.column(0)
    if documents.null_count:
        empty = next(row for row, document in enumerate(documents) if not document.is_valid)
        raise IngestError(f"{place(empty)}: {rows.schema.names[0]} is null")
    if rows.schema.names[0] == "text":
        for row, text in enumerate(documents):
            yield Text(place(row), _text(place(row), text.as_py()), labels[row] if labels else "")
        return
    ids = documents.flatten()
    ends = np.cumsum(documents.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
    if ids.null_count:
        at = next(position for position, value in enumerate(ids) if not value.is_valid)
        row = int(np.searchsorted(ends, at, "right"))
        raise IngestError(f"{place(row)}, token {at - int(ends[row - 1] if row else 0)}: is null")
    yield Ids(ids.to_numpy(), ends, place, labels)


def _text(place: str, text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise IngestError(f"{place}: longer than {LONGEST_TEXT} characters; make several documents of it")
    return text


def _labels(rows: Any, place: Any) -> list[str]:
    ids = enumerate(rows.column("id"))
    return ["" if not value.is_valid else checked_label(place(row), str(value.as_py())) for row, value in ids]
