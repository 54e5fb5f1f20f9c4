"""Documents of histories as the payload of a journal's frame: a head of three u32, then the columns, little-endian."""

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from draftd.storage import DamagedError
from draftd.wire import HistoryDocuments, Namespace

_HEAD = struct.Struct("<III")  # documents, tokens, bytes of the labels


def pack(documents: HistoryDocuments) -> bytes:
    labels = [label.encode() for label in documents.labels]
    return b"".join(
        (
            _HEAD.pack(len(labels), len(documents.token_ids), sum(map(len, labels))),
            documents.times.astype("<i8").tobytes(),
            documents.document_ends.astype("<i8").tobytes(),
            np.cumsum([len(label) for label in labels], dtype="<i8").tobytes(),
            documents.token_ids.astype("<i4").tobytes(),
            *labels,
        )
    )


def unpack(namespace: Namespace, group: str, generation: int, payloads: Sequence[bytes]) -> HistoryDocuments:
    """The documents of all payloads, in one. Raises DamagedError."""
    parts = [_columns(payload) for payload in payloads]
    starts = accumulate((len(part[0]) for part in parts), initial=0)
    ends = [part[1] + start for part, start in zip(parts, starts, strict=False)]
    return HistoryDocuments(
        namespace=namespace,
        group=group,
        generation=generation,
        token_ids=np.concatenate([np.empty(0, np.int32), *(part[0] for part in parts)]),
        document_ends=np.concatenate([np.empty(0, np.int64), *ends]),
        labels=[label for part in parts for label in part[2]],
        times=np.concatenate([np.empty(0, np.int64), *(part[3] for part in parts)]),
    )


def without(documents: HistoryDocuments, picked: NDArray[np.bool_]) -> HistoryDocuments:
    """Those that are not picked."""
    lengths = np.diff(documents.document_ends, prepend=0)
    return HistoryDocuments(
        namespace=documents.namespace,
        group=documents.group,
        generation=documents.generation,
        token_ids=documents.token_ids[np.repeat(~picked, lengths)],
        document_ends=np.cumsum(lengths[~picked], dtype=np.int64),
        labels=[label for label, gone in zip(documents.labels, picked, strict=True) if not gone],
        times=documents.times[~picked],
    )


def _columns(payload: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64], list[str], NDArray[np.int64]]:
    try:
        count, tokens, label_bytes = _HEAD.unpack_from(payload)
        if len(payload) != _HEAD.size + 24 * count + 4 * tokens + label_bytes:
            raise ValueError("its length is wrong")
        rows = np.frombuffer(payload, "<i8", 3 * count, _HEAD.size).reshape(3, count)
        token_ids = np.frombuffer(payload, "<i4", tokens, _HEAD.size + 24 * count)
        times, document_ends, label_ends = rows
        _check_ends(document_ends, tokens)
        _check_ends(label_ends, label_bytes)
        packed = payload[len(payload) - label_bytes :]
        labels = [packed[start:end].decode() for start, end in pairwise([0, *label_ends.tolist()])]
    except (ValueError, struct.error) as error:
        raise DamagedError(f"a frame holds no documents: {error}") from None
    return token_ids.astype(np.int32), document_ends.astype(np.int64), labels, times.astype(np.int64)


def _check_ends(ends: NDArray[np.int64], total: int) -> None:
    running = np.concatenate(([0], ends, [total]))
    if np.any(np.diff(running) < 0) or running[-2] != total:
        raise ValueError("its ends do not fit together")
