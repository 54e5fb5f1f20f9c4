"""The blocking client: the caller's thread sends and receives, which is the shortest way there is."""

import threading
import time
from collections.abc import Mapping, Sequence
from itertools import repeat
from types import TracebackType
from typing import Self, Unpack

from numpy.typing import ArrayLike

from draftd.client.channel import Channel, ChannelError, grpc_target
from draftd.client.core import ClientCore, Outgoing
from draftd.client.draft import Draft, Tails
from draftd.client.grpc_channel import GrpcChannel
from draftd.client.health import Health
from draftd.client.mirror import Mirror
from draftd.client.opening import OpenOptions, opening_message
from draftd.client.request import CloseWord, Request, close_reason
from draftd.client.rows import Verified, Wish, verified_rows
from draftd.client.standing import Answer
from draftd.client.zmq_channel import ZmqChannel
from draftd.wire import Namespace, Reason


class ChannelClient:
    """A client over any channel.

    Threads may share it; they take turns. Nothing in the step path (open, draft, commit, step, close) raises for
    what a drafter or a network does: drafts come back empty, with the reason, within the deadline. ValueError is
    for arguments that can't be meant.
    """

    def __init__(
        self, channel: Channel, namespace: Namespace, *, verifier: str, deadline: float, vocabulary_size: int
    ) -> None:
        if deadline <= 0:
            channel.close()
            raise ValueError(f"deadline is {deadline}; give seconds above 0")
        self.namespace = namespace
        self.deadline = deadline  # seconds, of every call
        self._vocabulary_size = vocabulary_size
        self._channel = channel
        self._core = ClientCore(verifier)
        self._turn = threading.Lock()
        self._closed = False

    # Verbs

    def open(
        self,
        request_id: str,
        prompt: ArrayLike,
        *,
        wait: bool = False,
        deadline: float | None = None,
        **options: Unpack[OpenOptions],
    ) -> Request:
        """Open a request, or open it again with a new prompt. Options: see OpenOptions.

        With `wait`, returns once the prompt and everything closed before is indexed, or after `deadline`
        seconds (default: the client's). Without, returns at once.
        """
        opening = opening_message(request_id, prompt, self.namespace, self._vocabulary_size, options)
        until = time.monotonic() + (self.deadline if deadline is None else deadline)
        with self._turn:
            mirror = self._core.mirrors.open(opening)
            if not wait:
                self._post([], [], opening=mirror)
            elif self._may_ask():
                self._converse([], [], None, until, opening=mirror)
        return Request(self, mirror)

    def step(
        self,
        commits: Mapping[Request, Sequence[int]],
        budget: int | None = None,
        max_nodes: int = 16,
        *,
        min_survival: float = 0.0,
        verified: Mapping[Request, Verified] | None = None,
    ) -> dict[Request, Draft]:
        """One engine step in one message: commit each request's new tokens, draft what comes next.

        `budget` limits the nodes of the whole batch, `max_nodes` those of each request.
        """
        wish = Wish(max_nodes, budget, min_survival)
        verified_of_rows = verified_rows(map(verified.get, commits)) if verified else None
        mirrors = [request.mirror for request in commits]
        tokens = list(commits.values())
        if True in [mirror.closed for mirror in mirrors]:
            return self._step_open_ones(commits, budget, max_nodes, min_survival, verified)
        until = time.monotonic() + self.deadline
        if not self._turn.acquire(timeout=self.deadline):
            self._core.mirrors.miss(mirrors, tokens)
            self._core.standing.counters.late += 1
            return _drafts(commits, self._core.no_tails(mirrors, Reason.LATE))
        try:
            if self._may_ask():
                tails = self._converse(mirrors, tokens, wish, until, verified=verified_of_rows)
            else:
                self._core.mirrors.miss(mirrors, tokens)
                tails = self._core.no_tails(mirrors, Reason.CLOSED if self._closed else Reason.OFF)
        finally:
            self._turn.release()
        return _drafts(commits, tails)

    def _step_open_ones(
        self,
        commits: Mapping[Request, Sequence[int]],
        budget: int | None,
        max_nodes: int,
        min_survival: float,
        verified: Mapping[Request, Verified] | None,
    ) -> dict[Request, Draft]:
        still_open = {request: tokens for request, tokens in commits.items() if not request.closed}
        drafts = self.step(still_open, budget, max_nodes, min_survival=min_survival, verified=verified)
        closed = [request for request in commits if request.closed]
        tails = self._core.no_tails([request.mirror for request in closed], Reason.CLOSED)
        drafts.update(zip(closed, map(Draft, repeat(tails), range(len(closed))), strict=True))
        return {request: drafts[request] for request in commits}

    def commit(
        self, commits: Mapping[Request, Sequence[int]], *, verified: Mapping[Request, Verified] | None = None
    ) -> None:
        """Tell what the target emitted, for many requests in one message; does not wait for an answer."""
        taken = {request: tokens for request, tokens in commits.items() if not request.closed}
        verified_of_rows = verified_rows(map(verified.get, taken)) if verified else None
        mirrors = [request.mirror for request in taken]
        tokens = list(taken.values())
        if not self._turn.acquire(timeout=self.deadline):
            self._core.mirrors.miss(mirrors, tokens)
            return
        try:
            self._post(mirrors, tokens, verified=verified_of_rows)
        finally:
            self._turn.release()

    def close_request(self, request: Request, reason: CloseWord = "finished") -> None:
        """What `request.close` does."""
        code = close_reason(reason)
        with self._turn:
            if not request.closed:
                self._core.mirrors.close(request.mirror, code)
                self._post([], [])

    @property
    def last_core_micros(self) -> int:
        """Time that the last answered step spent in the drafter's core, in microseconds."""
        return self._core.last_core_micros

    def health(self) -> Health:
        """How the drafter and the way to it are doing, as far as this client has seen."""
        return self._core.standing.health(self._closed)

    def check(self, deadline: float = 1.0) -> Health:
        """Ask the drafter for a sign of life, waiting up to `deadline` seconds, also while the breaker is open."""
        with self._turn:
            if not self._closed:
                self._converse([], [], None, time.monotonic() + deadline)
        return self.health()

    def close(self) -> None:
        """Closes the connection, not the requests: the drafter keeps those until they time out."""
        with self._turn:
            if not self._closed:
                self._closed = True
                self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What the verbs are made of; all of it runs with the turn held

    def _may_ask(self) -> bool:
        return not self._closed and self._core.standing.may_ask(time.monotonic())

    def _post(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        *,
        verified: Sequence[Verified] | None = None,
        opening: Mirror | None = None,
    ) -> None:
        """Send without waiting. What can't be sent is repaired by a later re-sync."""
        if self._closed or self._core.standing.breaker.is_open:
            self._core.mirrors.miss(mirrors, tokens)
            return
        self._drain()
        outgoing = self._core.post(mirrors, tokens, verified=verified, opening=opening)
        if not self._channel.send(outgoing.frames, 0):
            self._core.gave_up(outgoing, Reason.UNREACHABLE)

    def _converse(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        wish: Wish | None,
        until: float,
        *,
        verified: Sequence[Verified] | None = None,
        opening: Mirror | None = None,
    ) -> Tails:
        self._drain()
        exchange = self._core.exchange(mirrors, tokens, wish, verified=verified, opening=opening)
        outgoing = next(exchange)
        while True:
            answer = self._round_trip(outgoing, until)
            self._core.standing.judge(answer, time.monotonic())
            try:
                outgoing = exchange.send(answer)
            except StopIteration as end:
                tails: Tails = end.value
                return tails

    def _round_trip(self, outgoing: Outgoing, until: float) -> Answer:
        """Send, then read until the answer comes or the time is up."""
        if not self._channel.send(outgoing.frames, until - time.monotonic()):
            return self._give_up(outgoing, Reason.UNREACHABLE)
        while (left := until - time.monotonic()) > 0:
            try:
                frame = self._channel.receive(left)
            except ChannelError:
                return self._give_up(outgoing, Reason.UNREACHABLE)
            if frame is not None and (answered := self._core.receive(frame)) and answered[0] == outgoing.step:
                return answered[1]
        return self._give_up(outgoing, Reason.LATE)

    def _give_up(self, outgoing: Outgoing, reason: Reason) -> Reason:
        self._core.gave_up(outgoing, reason)
        return reason

    def _drain(self) -> None:
        """Apply what came since: late answers, answers nobody waits for."""
        try:
            while self._core.expects_answers and (frame := self._channel.receive(0)) is not None:
                self._core.receive(frame)
        except ChannelError:
            pass  # the next send finds out and tries a new connection


def _drafts(commits: Mapping[Request, Sequence[int]], tails: Tails) -> dict[Request, Draft]:
    return dict(zip(commits, map(Draft, repeat(tails), range(len(commits))), strict=True))


class Client(ChannelClient):
    """A client of the drafter at `endpoint`: ipc://PATH or tcp://HOST:PORT (ZMQ, the fastest), grpc://HOST:PORT or
    grpc+unix:PATH (gRPC).

    Connecting happens by itself, also again after a restart of the drafter. `verifier` is a name for the drafter's
    logs, `deadline` the seconds that a call may take, `vocabulary_size` the limit of token ids (0: not stated).
    Raises ValueError for an endpoint of an unknown form.
    """

    def __init__(
        self,
        endpoint: str,
        namespace: Namespace = Namespace(),  # noqa: B008  (frozen)
        *,
        verifier: str = "verifier",
        deadline: float = 0.005,
        vocabulary_size: int = 0,
    ) -> None:
        target = grpc_target(endpoint)
        channel: Channel = ZmqChannel(endpoint) if target is None else GrpcChannel(target)
        super().__init__(channel, namespace, verifier=verifier, deadline=deadline, vocabulary_size=vocabulary_size)
