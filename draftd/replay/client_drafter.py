"""A draftd client, in process or over the wire, as something to replay against."""

import time
from collections.abc import Mapping, Sequence
from typing import Literal

from draftd.client import Client, Draft, Request
from draftd.client.local import LocalClient
from draftd.client.opening import OpenOptions, PresetName
from draftd.replay.runner import PlainDraft, ReplayError, TimedDrafts
from draftd.replay.traces import RecordedRequest
from draftd.wire import Reason

Shape = Literal["tree", "chain"]
Share = Literal["outputs", "all", "none"]

STOP_ID = 2  # every recorded output ends with it
SETTLING = "replay-settles"  # id of a request without text, whose opening waits for everything before it

# An empty draft is an answer, unless it is empty because nobody answered.
_NO_ANSWER = frozenset({Reason.LATE, Reason.UNREACHABLE, Reason.OFF, Reason.CLOSED, Reason.REFUSED, Reason.SHED})


class ClientRequest:
    """An open request. Raises ReplayError at its end if any message of the client was late, lost or refused."""

    def __init__(self, drafter: "ClientDrafter", request: Request) -> None:
        self._drafter = drafter
        self.request = request

    def finish(self, tokens: Sequence[int]) -> None:
        self.request.commit(tokens)
        self._drafter.settle()  # else it would depend on the machine whether others see these tokens before the close
        self.request.close("finished")
        self._drafter.settle()
        self._drafter.check_all_answered(self.request.request_id)


class ClientDrafter:
    """Opens requests as an engine would: with the stop id, never with the length that the recording is known to have.

    `shape`, `share` and `preset` are those of `Client.open`. Every draft waits until all text before it is indexed, so
    the figures don't depend on how fast this machine is.
    """

    def __init__(
        self,
        client: Client | LocalClient,
        *,
        shape: Shape = "tree",
        share: Share = "outputs",
        preset: PresetName | None = None,
    ) -> None:
        self._client = client
        self._options = OpenOptions(stop_ids=[STOP_ID], shape=shape, share=share, preset=preset)

    def open(self, recorded: RecordedRequest) -> ClientRequest:
        request = self._client.open(recorded.id, recorded.prompt, wait=True, **self._options)
        return ClientRequest(self, request)

    def step(self, commits: Mapping[ClientRequest, Sequence[int]], nodes: int, min_survival: float) -> TimedDrafts:
        """Raises ReplayError as soon as a draft was late, lost or refused."""
        if len(commits) > 1:
            self.settle()  # requests may read what the others said in the step before
        started = time.perf_counter_ns()
        drafts = self._client.step(
            {row.request: tokens for row, tokens in commits.items()}, max_nodes=nodes, min_survival=min_survival
        )
        micros = (time.perf_counter_ns() - started) / 1000
        plain = [self._plain(request.request_id, draft) for request, draft in drafts.items()]
        return TimedDrafts(plain, self._client.last_core_micros, micros)

    def settle(self) -> None:
        """Waits until everything that was committed and closed is indexed."""
        self._client.open(SETTLING, [], share="none", wait=True)

    def check_all_answered(self, name: str) -> None:
        """Raises ReplayError, naming the request `name`, if not."""
        counters = self._client.health().counters
        if counters.late or counters.unreachable or counters.refused or counters.off or counters.row_errors:
            raise ReplayError(f"{name}: not every message was answered: {self._trouble()}")

    def _plain(self, name: str, draft: Draft) -> PlainDraft:
        if not len(draft) and draft.reason in _NO_ANSWER:
            raise ReplayError(f"{name}: no draft at token {draft.base}: {draft.reason.name}, {self._trouble()}")
        tokens, parents, survival = draft.tokens, draft.parents, draft.survival
        content = tokens.tobytes() + parents.tobytes() + survival.tobytes()
        return PlainDraft(tokens.tolist(), parents.tolist(), survival, content)

    def _trouble(self) -> str:
        return self._client.health().last_error or "the drafter gave no reason"
