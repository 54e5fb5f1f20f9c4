"""A draftd client, in process or over the wire, as something to replay against."""

import time
from collections.abc import Sequence
from typing import Literal

from draftd.client import Client, Request
from draftd.client.local import LocalClient
from draftd.replay.runner import ReplayError, TimedDraft
from draftd.replay.traces import RecordedRequest
from draftd.wire import Reason

Shape = Literal["tree", "chain"]
Share = Literal["outputs", "all", "none"]

STOP_ID = 2  # every recorded output ends with it

# An empty draft is an answer, unless it is empty because nobody answered.
_NO_ANSWER = frozenset({Reason.LATE, Reason.UNREACHABLE, Reason.OFF, Reason.CLOSED, Reason.REFUSED, Reason.SHED})


class ClientDrafter:
    """Opens requests as an engine would: with the stop id, never with the length that the recording is known to have.

    `shape` and `share` are those of `Client.open`. Requests wait until everything before them is indexed, so the
    figures don't depend on how fast this machine is.
    """

    def __init__(self, client: Client | LocalClient, *, shape: Shape = "tree", share: Share = "outputs") -> None:
        self._client = client
        self._shape = shape
        self._share = share

    def open(self, recorded: RecordedRequest) -> "ClientRequest":
        request = self._client.open(
            recorded.id, recorded.prompt, stop_ids=[STOP_ID], shape=self._shape, share=self._share, wait=True
        )
        return ClientRequest(self._client, request, recorded.id)


class ClientRequest:
    """An open request. Raises ReplayError as soon as any answer was late, lost or refused."""

    def __init__(self, client: Client | LocalClient, request: Request, name: str) -> None:
        self._client = client
        self._request = request
        self._name = name

    def step(self, tokens: Sequence[int], nodes: int, min_survival: float) -> TimedDraft:
        started = time.perf_counter_ns()
        draft = self._request.step(tokens, budget=nodes, min_survival=min_survival)
        micros = (time.perf_counter_ns() - started) / 1000
        if not len(draft) and draft.reason in _NO_ANSWER:
            raise ReplayError(f"{self._name}: no draft at token {draft.base}: {draft.reason.name}, {self._trouble()}")
        content = draft.tokens.tobytes() + draft.parents.tobytes() + draft.survival.tobytes()
        tokens, parents = draft.tokens.tolist(), draft.parents.tolist()
        return TimedDraft(tokens, parents, content, self._client.last_core_micros, micros)

    def finish(self, tokens: Sequence[int]) -> None:
        self._request.commit(tokens)
        self._request.close("finished")
        counters = self._client.health().counters
        if counters.late or counters.unreachable or counters.refused or counters.off or counters.row_errors:
            raise ReplayError(f"{self._name}: not every message was answered: {self._trouble()}")

    def _trouble(self) -> str:
        return self._client.health().last_error or "the drafter gave no reason"
