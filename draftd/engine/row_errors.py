"""What the rows of a step that were not taken are told."""

import numpy as np

from draftd import native
from draftd.wire import DraftClose, RowError, Status, VerifyCommit


def close_errors(close: DraftClose, statuses: bytes) -> list[RowError]:
    request, epoch = np.frombuffer(close.request, "<u4"), np.frombuffer(close.epoch, "<u4")
    return [
        RowError(
            request=int(request[row]),
            epoch=int(epoch[row]),
            status=Status(status),
            message=f"close of epoch {epoch[row]}, which is older than the one open",
        )
        for row, status in enumerate(statuses)
        if status != Status.OK
    ]


def row_errors(commit: VerifyCommit, tails: native.Tails) -> list[RowError]:
    """A RowError with its message for every row of the commit that was not taken."""
    request, epoch = np.frombuffer(commit.request, "<u4"), np.frombuffer(commit.epoch, "<u4")
    start, token_end = np.frombuffer(commit.start, "<u4"), np.frombuffer(commit.token_end, "<u4")
    tokens, detail = np.frombuffer(commit.tokens, "<i4"), np.frombuffer(tails.detail, "<u4")
    errors = []
    for row in np.flatnonzero(np.frombuffer(tails.status, np.uint8)):
        status = Status(tails.status[row])
        match status:
            case Status.INVALID_TOKEN:
                first = token_end[row - 1] if row > 0 else 0
                message = f"token {detail[row]} of the commit is {tokens[first + detail[row]]}: not in the vocabulary"
            case Status.STALE_EPOCH:
                message = f"epoch {epoch[row]} is older than the one open"
            case _:
                message = f"a commit from {start[row]} on does not join what is known here: send DraftSync"
        errors.append(RowError(request=int(request[row]), epoch=int(epoch[row]), status=status, message=message))
    return errors
