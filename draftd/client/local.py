"""A client of an engine in the same process: the same verbs, frames and rules, no sockets."""

from collections import deque
from typing import Unpack

from draftd.client.client import ChannelClient
from draftd.client.pacing import PacingOptions
from draftd.engine import Answer, Engine
from draftd.wire import Namespace


class LocalChannel:
    """A Channel whose other end is an engine: sending is answering."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers: deque[Answer] = deque()

    def send(self, frames: list[bytes], _timeout: float) -> bool:
        self._answers.extend(map(self._engine.handle, frames))
        return True

    def receive(self, timeout: float) -> bytes | None:
        if not self._answers:
            return None
        answer = self._answers[0]
        if answer.ticket and not self._engine.wait_indexed(answer.ticket, timeout):
            return None
        self._answers.popleft()
        return answer.reply

    def close(self) -> None:
        """The engine belongs to whoever made it."""


class LocalClient(ChannelClient):
    """A client of `engine`, in this process and on the caller's thread.

    See Client for the arguments. The default deadline is generous: nothing can be lost on the way."""

    def __init__(
        self,
        engine: Engine,
        namespace: Namespace = Namespace(),  # noqa: B008  (frozen)
        *,
        verifier: str = "verifier",
        deadline: float = 30.0,
        vocabulary_size: int = 0,
        **pacing: Unpack[PacingOptions],
    ) -> None:
        super().__init__(
            LocalChannel(engine),
            namespace,
            verifier=verifier,
            deadline=deadline,
            vocabulary_size=vocabulary_size,
            **pacing,
        )
