"""Parquet files: a column `text` or `token_ids`, and perhaps a column `id`; a row is a document."""

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from draftd.ingest.documents import Ids, Piece, Text
from draftd.ingest.labels import checked_label
from draftd.ingest.problem import IngestError, TooLarge
from draftd.ingest.readers.limits import BYTES_A_TOKEN, ReadLimits
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
        with plain_file(file, limits.unpacked_bytes) as plain, parquet.ParquetFile(plain) as table:
            columns = _columns(table.schema_arrow, pyarrow.types)
            _refuse_bombs(table.metadata, limits)
            first = 0
            for rows in table.iter_batches(ROWS, columns=columns, use_threads=False):
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
    if given == ["text"] and not (types.is_string(kind) or types.is_large_string(kind)):
        raise IngestError(f"column text should hold strings, holds {kind}")
    lists = types.is_list(kind) or types.is_large_list(kind)
    if given == ["token_ids"] and not (lists and types.is_integer(kind.value_type)):
        raise IngestError(f"column token_ids should hold lists of integers, holds {kind}")
    return given + (["id"] if "id" in schema.names else [])


def _refuse_bombs(metadata: Any, limits: ReadLimits) -> None:
    unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if unpacked > limits.unpacked_bytes:
        raise TooLarge(
            f"the Parquet file holds {unpacked} bytes: {BYTES_A_TOKEN} are taken for each token of corpora.max_tokens"
        )


def _documents(rows: Any, first: int) -> Iterator[Piece]:
    def place(row: int) -> str:
        return f"row {first + row + 1}"

    labels = _labels(rows, place) if "id" in rows.schema.names else None
    documents = rows.column(0)
    if documents.null_count:
        empty = next(row for row, document in enumerate(documents) if not document.is_valid)
        raise IngestError(f"{place(empty)}: {rows.schema.names[0]} is null")
    if rows.schema.names[0] == "text":
        for row, text in enumerate(documents.to_pylist()):
            yield Text(place(row), text, labels[row] if labels else "")
        return
    ids = documents.flatten()
    ends = np.cumsum(documents.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
    if ids.null_count:
        at = next(position for position, value in enumerate(ids) if not value.is_valid)
        row = int(np.searchsorted(ends, at, "right"))
        raise IngestError(f"{place(row)}, token {at - int(ends[row - 1] if row else 0)}: is null")
    yield Ids(ids.to_numpy(), ends, place, labels)


def _labels(rows: Any, place: Any) -> list[str]:
    values = rows.column("id").to_pylist()
    return ["" if value is None else checked_label(place(row), str(value)) for row, value in enumerate(values)]
