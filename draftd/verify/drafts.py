"""Where the verifier gets its drafts from: any client of draftd, or nowhere."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Unpack

import numpy as np

from draftd.client import Request, RequestStates
from draftd.client.client import ChannelClient
from draftd.client.opening import OpenOptions
from draftd.verify.rules import Proposal


class DraftSource(Protocol):
    """Follows requests and proposes how they go on."""

    @property
    def reads_states(self) -> bool:
        """Whether it makes use of the target's hidden states; asked before each forward pass."""

    def open(self, request_id: str, prompt: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]) -> None: ...

    def propose(
        self, emitted: Mapping[str, Sequence[int]], states: Mapping[str, RequestStates]
    ) -> Mapping[str, Proposal]:
        """One step for all requests given: what each of them emitted since the last one, the hidden states that came
        with it, where it reads them, and what may come next."""

    def close(self, request_id: str, emitted: Sequence[int]) -> None:
        """The request is over; these were its last tokens."""


class NoDrafts:
    """Plain decoding."""

    reads_states = False

    def open(self, request_id: str, prompt: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]) -> None:
        """There is nothing to follow."""

    def propose(
        self,
        emitted: Mapping[str, Sequence[int]],
        states: Mapping[str, RequestStates],  # noqa: ARG002  (it reads none)
    ) -> Mapping[str, Proposal]:
        nothing = Proposal(np.empty(0, np.int32), np.empty(0, np.int16))
        return dict.fromkeys(emitted, nothing)

    def close(self, request_id: str, emitted: Sequence[int]) -> None:
        """There is nothing to follow."""


class ClientDrafts:
    """Drafts of at most `nodes` nodes from draftd; one message for a whole step. Options: those of `Client.open`.

    The client should state the model's vocabulary size: what is outside it is refused there.
    """

    def __init__(self, client: ChannelClient, nodes: int = 16, **options: Unpack[OpenOptions]) -> None:
        self._client = client
        self._nodes = nodes
        self._options = options
        self._requests: dict[str, Request] = {}

    def open(self, request_id: str, prompt: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]) -> None:
        options = OpenOptions(**self._options, max_new_tokens=max_new_tokens, stop_ids=stop_ids)
        self._requests[request_id] = self._client.open(request_id, prompt, hold=True, **options)

    @property
    def reads_states(self) -> bool:
        """Whether a draft source of the drafter does; it says so in its first answer."""
        return self._client.wants_hidden_states

    def propose(
        self, emitted: Mapping[str, Sequence[int]], states: Mapping[str, RequestStates]
    ) -> Mapping[str, Proposal]:
        commits = {self._requests[request_id]: tokens for request_id, tokens in emitted.items()}
        hidden = {self._requests[request_id]: of_request for request_id, of_request in states.items()}
        drafts = self._client.step(commits, max_nodes=self._nodes, hidden=hidden)
        return {request.request_id: Proposal(draft.tokens, draft.parents) for request, draft in drafts.items()}

    def close(self, request_id: str, emitted: Sequence[int]) -> None:
        request = self._requests.pop(request_id)
        self._client.commit({request: emitted})
        self._client.close_request(request)
