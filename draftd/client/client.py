"""The blocking client: the caller's thread sends and receives, which is the shortest way there is."""

import time
from collections.abc import Mapping, Sequence
from typing import Unpack

from numpy.typing import ArrayLike

from draftd.client.channel import Channel, checked_deadline, grpc_target
from draftd.client.closing import Closing
from draftd.client.columns import prompt_column
from draftd.client.core import ClientCore
from draftd.client.draft import Draft, drafts_of
from draftd.client.grpc_channel import GrpcChannel
from draftd.client.health import Health
from draftd.client.hidden_states import RequestStates, states_of_rows
from draftd.client.line import Line
from draftd.client.opening import OpenOptions, opening_message, refuse_wait_and_hold
from draftd.client.pacing import PacingOptions, StepOptions, load_of
from draftd.client.request import CloseWord, Request, close_reason
from draftd.client.ring_channel import RingChannel
from draftd.client.rows import Rows, Verified, Wish, verified_rows, wanted_nodes
from draftd.client.tape import NewWindows
from draftd.client.zmq_channel import ZmqChannel
from draftd.wire import Namespace, Reason


class ChannelClient(Closing):
    """A client over any channel.

    Threads may share it; they take turns. Nothing in the step path (open, draft, commit, step, close) raises for
    what a drafter or a network does, or takes longer than the deadline: drafts come back empty, with the reason.
    ValueError is for arguments that can't be meant.
    """

    def __init__(
        self,
        channel: Channel,
        namespace: Namespace,
        *,
        verifier: str,
        deadline: float,
        vocabulary_size: int,
        **pacing: Unpack[PacingOptions],
    ) -> None:
        try:
            self.deadline = checked_deadline(deadline)  # seconds, of every call
            self._core = ClientCore(verifier, namespace, vocabulary_size, pacing)
        except (ValueError, TypeError):
            channel.close()
            raise
        self.namespace = namespace
        self._vocabulary_size = vocabulary_size
        self._line = Line(channel, self._core)

    def open(
        self,
        request_id: str,
        prompt: ArrayLike,
        *,
        wait: bool = False,
        hold: bool = False,
        deadline: float | None = None,
        **options: Unpack[OpenOptions],
    ) -> Request:
        """Open a request, or open it again with a new prompt. Options: see OpenOptions.

        With `wait`, returns once the prompt and everything closed before is indexed, or after `deadline`
        seconds (default: the client's). Without, returns at once. What the drafter is not told now, it is told with
        the request's first step; with `hold` that is all of it, so that many requests open in that one message.
        """
        refuse_wait_and_hold(request_id, wait, hold)
        until = self._until(deadline)
        opening = opening_message(request_id, self.namespace, self._vocabulary_size, options)
        column = prompt_column(prompt)
        with self._line.guard:
            mirror = self._core.mirrors.open(opening, column)
        if wait:
            self._line.ask(Rows([], []), None, until, opening=mirror)
        elif not hold:
            self._line.post(Rows([], []), until, opening=mirror)
        return Request(self, mirror)

    def step(
        self,
        commits: Mapping[Request, Sequence[int]],
        budget: int | None = None,
        max_nodes: int | Mapping[Request, int] = 16,
        *,
        min_survival: float = 0.0,
        verified: Mapping[Request, Verified] | None = None,
        hidden: Mapping[Request, RequestStates] | None = None,
        **load: Unpack[StepOptions],
    ) -> dict[Request, Draft]:
        """One engine step: commit each request's new tokens, draft what comes next.

        One message, or several if the drafter's limits ask for it. `budget` limits the nodes of the whole batch,
        `max_nodes` those of each request; with 0 of either it only commits, and every draft is empty: Reason.NOT_ASKED.
        As a mapping `max_nodes` says it request by request; those that it leaves out want none.
        Both are upper limits where the drafter paces the steps; what it goes by are StepOptions.
        `hidden` are states of the target that came since the last step, all of one width, for draft sources that read
        them: they are sent where `wants_hidden_states`, the newest that a message takes. To copy them takes time, about
        a millisecond for each MiB, whatever the deadline.
        """
        until = self._until()
        most, nodes = wanted_nodes(max_nodes, commits)
        wish = Wish(most, budget, min_survival, load_of(load))
        mirrors = [request.mirror for request in commits]
        verified_of_rows = verified_rows(mirrors, map(verified.get, commits) if verified else None)
        if True in [mirror.closed for mirror in mirrors]:
            return self._step_open_ones(commits, wish, max_nodes, verified, hidden, until)
        states = states_of_rows(hidden, commits)
        rows = Rows(mirrors, list(commits.values()), verified_of_rows, nodes, states)
        return drafts_of(commits, self._line.ask(rows, wish, until))

    def _step_open_ones(
        self,
        commits: Mapping[Request, Sequence[int]],
        wish: Wish,
        max_nodes: int | Mapping[Request, int],
        verified: Mapping[Request, Verified] | None,
        hidden: Mapping[Request, RequestStates] | None,
        until: float,
    ) -> dict[Request, Draft]:
        still_open = {request: tokens for request, tokens in commits.items() if not request.closed}
        rows = _rows(still_open, verified, hidden, max_nodes)
        drafts = drafts_of(still_open, self._line.ask(rows, wish, until))
        closed = [request for request in commits if request not in still_open]
        with self._line.guard:
            drafts.update(drafts_of(closed, self._core.no_tails([it.mirror for it in closed], Reason.CLOSED)))
        return {request: drafts[request] for request in commits}

    def step_ahead(
        self,
        commits: Mapping[Request, Sequence[int]],
        budget: int | None = None,
        max_nodes: int = 16,
        *,
        min_survival: float = 0.0,
        tapes: int = 0,
        verified: Mapping[Request, Verified] | None = None,
        hidden: Mapping[Request, RequestStates] | None = None,
        **load: Unpack[StepOptions],
    ) -> dict[Request, Draft]:
        """`step` for an engine that does not wait: commits, asks, and returns at once what it has.

        That is, of each request's newest draft that came before this call, what continues the text with these tokens:
        the nodes below them, whose survival is that given these tokens. Empty when nothing came yet (Reason.LATE), and
        when the tokens left the draft or went past its end (Reason.NO_MATCH). The answer to this call is for the next.

        With `tapes`, at most 16, the drafter sends that many windows of text for each request, and the draft is a chain
        that is matched here, in the request's own text, its last drafts and its windows: docs/tapes.md. It is none of
        the drafter's, so there is nothing to report of it, and its survival is unknown, given as 1.
        """
        until = self._until()
        wish = Wish(max_nodes, budget, min_survival, load_of(load), tapes)
        still_open = {request: tokens for request, tokens in commits.items() if not request.closed}
        rows = _rows(still_open, verified, hidden)
        tails = self._line.post_ahead(rows, wish, until)
        drafts = drafts_of(still_open, self._line.left(rows.mirrors, wish) if tails is None else tails)
        closed = [request for request in commits if request not in still_open]
        with self._line.guard:
            drafts.update(drafts_of(closed, self._core.no_tails([it.mirror for it in closed], Reason.CLOSED)))
        return {request: drafts[request] for request in commits}

    def windows_ahead(
        self, commits: Mapping[Request, Sequence[int]], max_nodes: int, *, tapes: int
    ) -> dict[Request, NewWindows]:
        """`step_ahead` with tapes for an engine that matches by itself, as on its device: docs/ngram-gpu.md.

        Commits, asks for drafts of `max_nodes` and for `tapes` windows, at most 16, for each request, and returns at
        once which windows came since the last call, for those that are not closed. Nothing is matched here."""
        until = self._until()
        still_open = {request: tokens for request, tokens in commits.items() if not request.closed}
        rows = _rows(still_open)
        self._line.post_ahead(rows, Wish(max_nodes, tapes=tapes), until)
        return dict(zip(still_open, self._line.windows(rows.mirrors), strict=True))

    def commit(
        self,
        commits: Mapping[Request, Sequence[int]],
        *,
        verified: Mapping[Request, Verified] | None = None,
        hidden: Mapping[Request, RequestStates] | None = None,
    ) -> None:
        """Tell what the target emitted, for many requests in one message; does not wait for an answer."""
        taken = {request: tokens for request, tokens in commits.items() if not request.closed}
        self._line.post(_rows(taken, verified, hidden), self._until())

    def close_request(self, request: Request, reason: CloseWord = "finished", *, hold: bool = False) -> None:
        """What `request.close` does. A close that does not get out now goes with the next message; with `hold` it
        waits for that."""
        until = self._until()
        code = close_reason(reason)
        with self._line.guard:
            if request.closed:
                return
            self._core.mirrors.close(request.mirror, code)
        if not hold:
            self._line.post(Rows([], []), until)

    @property
    def wants_hidden_states(self) -> bool:
        """Whether a draft source reads the target's, for what this client states; the first answer says it."""
        return self._core.standing.wants_hidden_states

    @property
    def last_core_micros(self) -> int:
        """Time that the last answered step spent in the drafter's core, in microseconds."""
        return self._core.last_core_micros

    def health(self) -> Health:
        """How the drafter and the way to it are doing, as far as this client has seen."""
        with self._line.guard:
            return self._core.standing.health(self._line.closed)

    def count_refused(self, problem: str) -> None:
        """`health()` tells of a request that could not be opened, for an engine that goes on without its drafts."""
        with self._line.guard:
            self._core.standing.counters.row_errors += 1
            self._core.standing.refused(problem)

    def check(self, deadline: float = 1.0) -> Health:
        """Ask the drafter for a sign of life, waiting up to `deadline` seconds, also while the breaker is open."""
        self._line.ask(Rows([], []), None, self._until(deadline), insist=True)
        return self.health()

    def close(self) -> None:
        """Closes the connection, not the requests: the drafter keeps those until they time out."""
        self._line.close(self._until())

    def _until(self, deadline: float | None = None) -> float:
        return time.monotonic() + (self.deadline if deadline is None else checked_deadline(deadline))


def _rows(
    commits: Mapping[Request, Sequence[int]],
    verified: Mapping[Request, Verified] | None = None,
    hidden: Mapping[Request, RequestStates] | None = None,
    max_nodes: int | Mapping[Request, int] = 0,
) -> Rows:
    mirrors = [request.mirror for request in commits]
    of_rows = verified_rows(mirrors, map(verified.get, commits) if verified else None)
    _, nodes = wanted_nodes(max_nodes, commits)
    return Rows(mirrors, list(commits.values()), of_rows, nodes, states_of_rows(hidden, commits))


class Client(ChannelClient):
    """A client of the drafter at `endpoint`: ipc://PATH (shared memory, the fastest, or ZMQ where that can't be had),
    tcp://HOST:PORT (ZMQ), grpc://HOST:PORT or grpc+unix:PATH (gRPC).

    Connecting happens by itself, also again after a restart of the drafter. `verifier` is a name for the drafter's
    logs, `deadline` the seconds that a call may take, `vocabulary_size` the limit of token ids (0: not stated).
    PacingOptions say who decides how many nodes a step gets. Raises ValueError for an endpoint of an unknown form.
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
        channel = _channel_to(endpoint)
        super().__init__(
            channel, namespace, verifier=verifier, deadline=deadline, vocabulary_size=vocabulary_size, **pacing
        )


def _channel_to(endpoint: str) -> Channel:
    target = grpc_target(endpoint)
    if target is not None:
        return GrpcChannel(target)
    return RingChannel(endpoint) if endpoint.startswith("ipc://") else ZmqChannel(endpoint)
