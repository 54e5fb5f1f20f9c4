"""What commits say of the drafts before them: how many nodes were accepted, and of which requests that says nothing."""

import numpy as np
from numpy.typing import NDArray

from draftd import native
from draftd.wire import NO_TAIL, Status, StepBatch


class Outcomes:
    """Of one verifier, step after step. Not to be used from two threads at once."""

    def __init__(self) -> None:
        self._without: dict[int, int] = {}  # epochs of the requests whose last step wanted a draft and got no node

    def of_step(self, batch: StepBatch, tails: native.Tails, *, shed: bool) -> list[int]:
        """Accepted nodes of each request that verified a draft, or nothing but the root because its draft was empty.

        Of a draft that was used one step late they count from its beginning: those that the text went through before
        it could be verified, too, and those alone where nothing was left of it.

        The others are left out: first tokens, which come from prefill, tails older than our last two, requests that
        wanted no draft or were not drafted for because the step was shed.
        """
        accepted = np.frombuffer(tails.accepted, "<i2")
        counts = accepted >= 0
        requests, epochs = np.frombuffer(batch.commit.request, "<u4"), np.frombuffer(batch.commit.epoch, "<u4")
        if self._without:
            for row in np.flatnonzero(~counts & _committed_without_tail(batch, tails)).tolist():
                counts[row] = self._without.get(int(requests[row])) == epochs[row]
        self._forget(np.frombuffer(batch.close.request, "<u4"))
        self._forget(requests)
        if not shed:
            empty = _wanted_and_got_none(batch, tails)
            self._without.update(zip(requests[empty].tolist(), epochs[empty].tolist(), strict=True))
        counted: list[int] = np.maximum(accepted[counts], 0).tolist()
        return counted

    def _forget(self, requests: NDArray[np.uint32]) -> None:
        if self._without:
            for request in requests.tolist():
                self._without.pop(request, None)


def _committed_without_tail(batch: StepBatch, tails: native.Tails) -> NDArray[np.bool_]:
    """Of each row: whether tokens came with no tail."""
    tokens = np.diff(np.frombuffer(batch.commit.token_end, "<u4"), prepend=np.uint32(0))
    names_none = np.frombuffer(batch.commit.tail_base, "<u4") == NO_TAIL
    without: NDArray[np.bool_] = (tokens > 0) & names_none & _taken(tails)
    return without


def _wanted_and_got_none(batch: StepBatch, tails: native.Tails) -> NDArray[np.bool_]:
    nodes = np.diff(np.frombuffer(tails.node_end, "<u4"), prepend=np.uint32(0))
    wanted = np.frombuffer(batch.commit.max_nodes, "<u2") > 0
    empty: NDArray[np.bool_] = wanted & (nodes == 0) & _taken(tails)
    return empty


def _taken(tails: native.Tails) -> NDArray[np.bool_]:
    taken: NDArray[np.bool_] = np.frombuffer(tails.status, np.uint8) == Status.OK
    return taken
