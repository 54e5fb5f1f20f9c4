"""The client for an event loop: the verbs of Client, to be awaited; any number of calls may be under way."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import repeat
from types import TracebackType
from typing import Self, Unpack

from numpy.typing import ArrayLike

from draftd.client.channel import AsyncChannel, ChannelError, grpc_target
from draftd.client.core import ClientCore, Outgoing
from draftd.client.draft import Draft, Tails
from draftd.client.grpc_channel import AsyncGrpcChannel
from draftd.client.health import Health
from draftd.client.mirror import Mirror
from draftd.client.opening import OpenOptions, opening_message
from draftd.client.request import AsyncRequest, CloseWord, close_reason
from draftd.client.rows import Verified, Wish, verified_rows
from draftd.client.standing import Answer
from draftd.client.zmq_channel import AsyncZmqChannel
from draftd.wire import Namespace, Reason


class AsyncClient:
    """See Client: the same endpoints, arguments and promises. Belongs to the loop that first uses it."""

    def __init__(
        self,
        endpoint: str,
        namespace: Namespace = Namespace(),  # noqa: B008  (frozen)
        *,
        verifier: str = "verifier",
        deadline: float = 0.005,
        vocabulary_size: int = 0,
    ) -> None:
        if deadline <= 0:
            raise ValueError(f"deadline is {deadline}; give seconds above 0")
        self.namespace = namespace
        self.deadline = deadline  # seconds, of every call
        self._endpoint = endpoint
        self._target = grpc_target(endpoint)
        self._vocabulary_size = vocabulary_size
        self._core = ClientCore(verifier)
        self._channel: AsyncChannel | None = None
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
        deadline: float | None = None,
        **options: Unpack[OpenOptions],
    ) -> AsyncRequest:
        opening = opening_message(request_id, prompt, self.namespace, self._vocabulary_size, options)
        mirror = self._core.mirrors.open(opening)
        if not wait:
            await self._post([], [], opening=mirror)
        elif self._may_ask():
            await self._converse([], [], None, self.deadline if deadline is None else deadline, opening=mirror)
        return AsyncRequest(self, mirror)

    async def step(
        self,
        commits: Mapping[AsyncRequest, Sequence[int]],
        budget: int | None = None,
        max_nodes: int = 16,
        *,
        min_survival: float = 0.0,
        verified: Mapping[AsyncRequest, Verified] | None = None,
    ) -> dict[AsyncRequest, Draft]:
        wish = Wish(max_nodes, budget, min_survival)
        served = [request for request in commits if not request.closed]
        mirrors = [request.mirror for request in served]
        tokens = [commits[request] for request in served]
        verified_of_rows = verified_rows(map(verified.get, served)) if verified else None
        if self._may_ask():
            tails = await self._converse(mirrors, tokens, wish, self.deadline, verified=verified_of_rows)
        else:
            self._core.mirrors.miss(mirrors, tokens)
            await asyncio.sleep(0)  # others run, also where a caller asks again and again
            tails = self._core.no_tails(mirrors, Reason.CLOSED if self._closed else Reason.OFF)
        drafts = dict(zip(served, map(Draft, repeat(tails), range(len(served))), strict=True))
        if len(served) < len(commits):
            closed = [request for request in commits if request not in drafts]
            tails = self._core.no_tails([request.mirror for request in closed], Reason.CLOSED)
            drafts.update(zip(closed, map(Draft, repeat(tails), range(len(closed))), strict=True))
        return drafts

    async def commit(
        self, commits: Mapping[AsyncRequest, Sequence[int]], *, verified: Mapping[AsyncRequest, Verified] | None = None
    ) -> None:
        taken = [request for request in commits if not request.closed]
        verified_of_rows = verified_rows(map(verified.get, taken)) if verified else None
        await self._post(
            [request.mirror for request in taken], [commits[request] for request in taken], verified=verified_of_rows
        )

    async def close_request(self, request: AsyncRequest, reason: CloseWord = "finished") -> None:
        code = close_reason(reason)
        if not request.closed:
            self._core.mirrors.close(request.mirror, code)
            await self._post([], [])

    @property
    def last_core_micros(self) -> int:
        return self._core.last_core_micros

    def health(self) -> Health:
        return self._core.standing.health(self._closed)

    async def check(self, deadline: float = 1.0) -> Health:
        if not self._closed:
            await self._converse([], [], None, deadline)
        return self.health()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for future in self._awaited.values():
            future.cancel()
        if self._reader is not None:
            self._reader.cancel()
        if self._channel is not None:
            await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What the verbs are made of

    def _may_ask(self) -> bool:
        return not self._closed and self._core.standing.may_ask(asyncio.get_running_loop().time())

    async def _post(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        *,
        verified: Sequence[Verified] | None = None,
        opening: Mirror | None = None,
    ) -> None:
        if self._closed or self._core.standing.breaker.is_open:
            self._core.mirrors.miss(mirrors, tokens)
            return
        outgoing = self._core.post(mirrors, tokens, verified=verified, opening=opening)
        try:
            async with asyncio.timeout(self.deadline):
                await self._connected().send(outgoing.frames)
        except TimeoutError:
            self._core.gave_up(outgoing, Reason.UNREACHABLE)

    async def _converse(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        wish: Wish | None,
        deadline: float,
        *,
        verified: Sequence[Verified] | None = None,
        opening: Mirror | None = None,
    ) -> Tails:
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        exchange = self._core.exchange(mirrors, tokens, wish, verified=verified, opening=opening)
        outgoing = next(exchange)
        while True:
            answer = await self._round_trip(outgoing, until)
            self._core.standing.judge(answer, loop.time())
            try:
                outgoing = exchange.send(answer)
            except StopIteration as end:
                tails: Tails = end.value
                return tails

    async def _round_trip(self, outgoing: Outgoing, until: float) -> Answer:
        channel = self._connected()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._awaited[outgoing.step] = future
        answer: Answer = Reason.UNREACHABLE
        try:
            async with asyncio.timeout_at(until):
                await channel.send(outgoing.frames)
                answer = Reason.LATE
                answer = await future
        except TimeoutError:
            pass  # the answer stays what it was when the time was up
        finally:
            del self._awaited[outgoing.step]
        if isinstance(answer, Reason):
            self._core.gave_up(outgoing, answer)
        return answer

    def _connected(self) -> AsyncChannel:
        if self._channel is None:
            target = self._target
            self._channel = AsyncZmqChannel(self._endpoint) if target is None else AsyncGrpcChannel(target)
            self._reader = asyncio.create_task(self._read(self._channel), name="draftd-client-reader")
        return self._channel

    async def _read(self, channel: AsyncChannel) -> None:
        while True:
            try:
                answered = self._core.receive(await channel.receive())
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
