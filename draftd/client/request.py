"""The handles that `open` returns."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from draftd.client.draft import Draft
from draftd.client.mirror import Mirror
from draftd.client.rows import Verified
from draftd.wire import CloseReason, Status

if TYPE_CHECKING:
    from draftd.client.async_client import AsyncClient
    from draftd.client.client import ChannelClient

CloseWord = Literal["finished", "aborted"]
_CLOSE_REASONS: Mapping[str, CloseReason] = {"finished": CloseReason.FINISHED, "aborted": CloseReason.ABORTED}


def close_reason(word: CloseWord) -> CloseReason:
    """Raises ValueError for a word that is none of the reasons."""
    if word not in _CLOSE_REASONS:
        raise ValueError(f"close reason is {word!r}; choose one of {', '.join(_CLOSE_REASONS)}")
    return _CLOSE_REASONS[word]


class OpenedRequest:
    """What both kinds of handle know. Handles are the same only if they are the same object."""

    __slots__ = ("mirror",)

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror

    @property
    def request_id(self) -> str:
        return self.mirror.opening.request_id

    @property
    def epoch(self) -> int:
        return self.mirror.epoch

    @property
    def length(self) -> int:
        """Committed length: prompt and output, in tokens."""
        return self.mirror.length

    @property
    def closed(self) -> bool:
        return self.mirror.closed

    @property
    def refused(self) -> Status:
        """Why the drafter does not serve this request; OK as far as it does. `health().last_refusal` has the words."""
        return self.mirror.refused

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.length} tokens"
        return f"{type(self).__name__}({self.request_id!r}, {state})"


class Request(OpenedRequest):
    """One open request of a blocking client. None of its verbs raises for what a drafter or a network does."""

    __slots__ = ("_client",)

    def __init__(self, client: "ChannelClient", mirror: Mirror) -> None:
        super().__init__(mirror)
        self._client = client

    def draft(self, budget: int = 16, *, min_survival: float = 0.0) -> Draft:
        """At most `budget` nodes that continue the committed text; of 0, an empty draft."""
        return self.step((), budget, min_survival=min_survival)

    def commit(self, tokens: Sequence[int], *, verified: Verified = None) -> None:
        """Tell what the target emitted, without waiting for an answer.

        `verified` says which nodes of the last delivered draft went through the target: None all of them,
        a number the first so many, or one flag per node.
        """
        self._client.commit({self: tokens}, verified={self: verified})

    def step(
        self, tokens: Sequence[int], budget: int = 16, *, verified: Verified = None, min_survival: float = 0.0
    ) -> Draft:
        """`commit` and `draft` in one round trip."""
        drafts = self._client.step(
            {self: tokens}, max_nodes=budget, min_survival=min_survival, verified={self: verified}
        )
        return drafts[self]

    def close(self, reason: CloseWord = "finished") -> None:
        """The request is over. Closing twice does nothing."""
        self._client.close_request(self, reason)


class AsyncRequest(OpenedRequest):
    """One open request of an AsyncClient: the verbs of Request, to be awaited."""

    __slots__ = ("_client",)

    def __init__(self, client: "AsyncClient", mirror: Mirror) -> None:
        super().__init__(mirror)
        self._client = client

    async def draft(self, budget: int = 16, *, min_survival: float = 0.0) -> Draft:
        return await self.step((), budget, min_survival=min_survival)

    async def commit(self, tokens: Sequence[int], *, verified: Verified = None) -> None:
        await self._client.commit({self: tokens}, verified={self: verified})

    async def step(
        self, tokens: Sequence[int], budget: int = 16, *, verified: Verified = None, min_survival: float = 0.0
    ) -> Draft:
        drafts = await self._client.step(
            {self: tokens}, max_nodes=budget, min_survival=min_survival, verified={self: verified}
        )
        return drafts[self]

    async def close(self, reason: CloseWord = "finished") -> None:
        await self._client.close_request(self, reason)
