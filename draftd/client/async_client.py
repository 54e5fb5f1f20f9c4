"""The client for an event loop: the verbs of Client, to be awaited; any number of calls may be under way."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

from numpy.typing import ArrayLike

from draftd.client.channel import AsyncChannel, ChannelError, checked_deadline, grpc_target
from draftd.client.columns import prompt_column
from draftd.client.core import ClientCore, Outgoing
from draftd.client.draft import Draft, Tails, drafts_of
from draftd.client.grpc_channel import AsyncGrpcChannel
from draftd.client.health import Health
from draftd.client.hidden_states import RequestStates, states_of_rows
from draftd.client.mirror import Mirror
from draftd.client.opening import OpenOptions, opening_message, refuse_wait_and_hold
from draftd.client.pacing import PacingOptions, StepOptions, load_of
from draftd.client.request import AsyncRequest, CloseWord, close_reason
from draftd.client.rows import Rows, Verified, Wish, verified_rows, wanted_nodes
from draftd.client.standing import Answer
from draftd.client.zmq_channel import AsyncZmqChannel
from draftd.wire import Namespace, Reason


class AsyncClient:
    """See Client: the same endpoints, arguments and promises; at ipc:// over ZMQ. Belongs to the loop that
    first uses it.

    A caller that is cancelled leaves its request as after a late answer.
    """

    def __init__(
        self,
        endpoint: str,
        namespace: Namespace = Namespace(),  # noqa: B008  (frozen)
        *,
        verifier: str = "verifier",
        deadline: float = 0.005,
        vocabulary_size: int = 0,
        **pacing: Unpack[PacingOptions],
    ) -> None:
        self.namespace = namespace
        self.deadline = checked_deadline(deadline)  # seconds, of every call
        self._vocabulary_size = vocabulary_size
        self._core = ClientCore(verifier, namespace, vocabulary_size, pacing)
        target = grpc_target(endpoint)
        self._channel: AsyncChannel = AsyncZmqChannel(endpoint) if target is None else AsyncGrpcChannel(target)
        self._reader: asyncio.Task[None] | None = None
        self._awaited: dict[int, asyncio.Future[Answer]] = {}
        self._closed = False

    # Verbs

    async def open(
        self,
        request_id: str,
        prompt: ArrayLike,
        *,
        wait: bool = False,
        hold: bool = False,
        deadline: float | None = None,
        **options: Unpack[OpenOptions],
    ) -> AsyncRequest:
        """Open a request, or open it again with a new prompt. See Client.open."""
        refuse_wait_and_hold(request_id, wait, hold)
        opening = opening_message(request_id, self.namespace, self._vocabulary_size, options)
        column = prompt_column(prompt)
        mirror = self._core.mirrors.open(opening, column)
        if wait:
            await self._ask(
                Rows([], []), None, self.deadline if deadline is None else checked_deadline(deadline), opening=mirror
            )
        elif not hold:
            await self._post(Rows([], []), opening=mirror)
        return AsyncRequest(self, mirror)

    async def step(
        self,
        commits: Mapping[AsyncRequest, Sequence[int]],
        budget: int | None = None,
        max_nodes: int | Mapping[AsyncRequest, int] = 16,
        *,
        min_survival: float = 0.0,
        verified: Mapping[AsyncRequest, Verified] | None = None,
        hidden: Mapping[AsyncRequest, RequestStates] | None = None,
        **load: Unpack[StepOptions],
    ) -> dict[AsyncRequest, Draft]:
        """One engine step: commit each request's new tokens, draft what comes next. See Client.step."""
        most, _ = wanted_nodes(max_nodes, commits)
        wish = Wish(most, budget, min_survival, load_of(load))
        closed = [request for request in commits if request.closed]
        drafts = drafts_of(closed, self._core.no_tails([it.mirror for it in closed], Reason.CLOSED))
        rows, served = _open_rows(commits, verified, hidden, max_nodes)
        drafts.update(drafts_of(served, await self._ask(rows, wish, self.deadline)))
        return {request: drafts[request] for request in commits}

    async def step_ahead(
        self,
        commits: Mapping[AsyncRequest, Sequence[int]],
        budget: int | None = None,
        max_nodes: int = 16,
        *,
        min_survival: float = 0.0,
        tapes: int = 0,
        verified: Mapping[AsyncRequest, Verified] | None = None,
        hidden: Mapping[AsyncRequest, RequestStates] | None = None,
        **load: Unpack[StepOptions],
    ) -> dict[AsyncRequest, Draft]:
        """`step` for an engine that does not wait for the answer. See Client.step_ahead."""
        wish = Wish(max_nodes, budget, min_survival, load_of(load), tapes)
        closed = [request for request in commits if request.closed]
        drafts = drafts_of(closed, self._core.no_tails([it.mirror for it in closed], Reason.CLOSED))
        rows, served = _open_rows(commits, verified, hidden)
        drafts.update(drafts_of(served, await self._post_ahead(rows, wish)))
        return {request: drafts[request] for request in commits}

    async def commit(
        self,
        commits: Mapping[AsyncRequest, Sequence[int]],
        *,
        verified: Mapping[AsyncRequest, Verified] | None = None,
        hidden: Mapping[AsyncRequest, RequestStates] | None = None,
    ) -> None:
        """Tell what the target emitted, for many requests in one message; does not wait for an answer."""
        rows, _ = _open_rows(commits, verified, hidden)
        await self._post(rows)

    async def close_request(self, request: AsyncRequest, reason: CloseWord = "finished", *, hold: bool = False) -> None:
        """What `request.close` does. See Client.close_request."""
        code = close_reason(reason)
        if not request.closed:
            self._core.mirrors.close(request.mirror, code)
            if not hold:
                await self._post(Rows([], []))

    @property
    def wants_hidden_states(self) -> bool:
        """Whether a draft source reads the target's. See Client.wants_hidden_states."""
        return self._core.standing.wants_hidden_states

    @property
    def last_core_micros(self) -> int:
        """Time that the last answered step spent in the drafter's core, in microseconds."""
        return self._core.last_core_micros

    def health(self) -> Health:
        """How the drafter and the way to it are doing, as far as this client has seen."""
        return self._core.standing.health(self._closed)

    async def check(self, deadline: float = 1.0) -> Health:
        """Ask the drafter for a sign of life, waiting up to `deadline` seconds, also while the breaker is open."""
        await self._ask(Rows([], []), None, checked_deadline(deadline), insist=True)
        return self.health()

    async def close(self) -> None:
        """Closes the connection, not the requests. Calls under way get empty drafts with Reason.CLOSED."""
        if self._closed:
            return
        self._closed = True
        for future in self._awaited.values():
            if not future.done():
                future.set_result(Reason.CLOSED)
        if self._reader is not None:
            self._reader.cancel()
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What the verbs are made of

    async def _ask(
        self,
        rows: Rows,
        wish: Wish | None,
        deadline: float,
        *,
        opening: Mirror | None = None,
        insist: bool = False,
    ) -> Tails:
        """Commit and wait for drafts. `insist`: the circuit breaker has no say."""
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        if self._closed or not (insist or self._core.standing.may_ask(loop.time())):
            tails = self._core.not_asked(rows, Reason.CLOSED if self._closed else Reason.OFF)
            await asyncio.sleep(0)  # others run, also where a caller asks again and again
            return tails
        exchange = self._core.exchange(rows, wish, opening=opening)
        outgoing = next(exchange)
        while True:
            answer = await self._round_trip(outgoing, until)
            self._core.standing.judge(answer, loop.time())
            try:
                outgoing = exchange.send(answer)
            except StopIteration as end:
                drafted: Tails = end.value
                return drafted

    async def _post(self, rows: Rows, *, opening: Mirror | None = None) -> None:
        """Send without waiting for an answer. What can't be sent is repaired by a later sync."""
        if self._closed or self._core.standing.breaker.is_open:
            self._core.mirrors.miss(rows.mirrors, rows.tokens)
            return
        until = asyncio.get_running_loop().time() + self.deadline
        for outgoing in self._core.post(rows, opening=opening):
            sent = False
            try:
                sent = await self._send(outgoing, until)
            finally:
                if not sent:
                    self._core.gave_up(outgoing, Reason.UNREACHABLE)

    async def _post_ahead(self, rows: Rows, wish: Wish) -> Tails:
        """Commit and ask without waiting for the answer; what is left of the tails that came before."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # the reader takes what has come
        if self._closed or not self._core.standing.may_ask(loop.time()):
            return self._core.not_asked(rows, Reason.CLOSED if self._closed else Reason.OFF)
        messages = self._core.post_ahead(rows, wish)
        tails = self._core.left(rows.mirrors, wish)()
        for outgoing in messages:
            sent = False
            try:
                sent = await self._send(outgoing, loop.time() + self.deadline)
            finally:
                if not sent:
                    self._core.gave_up(outgoing, Reason.UNREACHABLE)
                    self._core.standing.judge(Reason.UNREACHABLE, loop.time())
        return tails

    async def _round_trip(self, outgoing: Outgoing, until: float) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._awaited[outgoing.step] = future
        answer: Answer = Reason.UNREACHABLE
        try:
            if await self._send(outgoing, until):
                answer = Reason.LATE
                async with asyncio.timeout_at(until):
                    answer = await future
            elif self._has_ended():
                answer = Reason.CLOSED
        except TimeoutError:
            pass  # late
        finally:  # also when the caller is cancelled
            del self._awaited[outgoing.step]
            if isinstance(answer, Reason):
                self._core.gave_up(outgoing, answer)
        return answer

    async def _send(self, outgoing: Outgoing, until: float) -> bool:
        """False: there was no connection, or no room, in time, or the client was closed meanwhile."""
        if self._has_ended():
            return False
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(), name="draftd-client-reader")
        try:
            async with asyncio.timeout_at(until):
                await self._channel.send(outgoing.frames)
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            if not self._has_ended() or _is_cancelled():
                raise
            return False  # the channel's close took what was about to be sent; nobody cancelled the caller
        return True

    def _has_ended(self) -> bool:
        return self._closed  # asked anew after every wait

    async def _read(self) -> None:
        while True:
            try:
                answered = self._core.receive(await self._channel.receive())
            except ChannelError:
                for future in self._awaited.values():
                    if not future.done():
                        future.set_result(Reason.UNREACHABLE)
                continue
            if answered is None:
                continue
            step, answer = answered
            if step in self._awaited and not self._awaited[step].done():
                self._awaited[step].set_result(answer)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _open_rows(
    commits: Mapping[AsyncRequest, Sequence[int]],
    verified: Mapping[AsyncRequest, Verified] | None,
    hidden: Mapping[AsyncRequest, RequestStates] | None,
    max_nodes: int | Mapping[AsyncRequest, int] = 0,
) -> tuple[Rows, list[AsyncRequest]]:
    """Those that are not closed, with their rows."""
    served = [request for request in commits if not request.closed]
    mirrors = [request.mirror for request in served]
    verified_of_rows = verified_rows(mirrors, map(verified.get, served) if verified else None)
    _, nodes = wanted_nodes(max_nodes, served)
    states = states_of_rows(hidden, served)
    return Rows(mirrors, [commits[request] for request in served], verified_of_rows, nodes, states), served
