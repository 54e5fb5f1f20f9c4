"""The client without sockets and clocks: builds frames, reads frames, keeps mirrors and drafter in step.

Every client drives it the same way. `exchange` is a conversation: it yields what to send and is told what came
back. `post` is the one-way form. Every frame that arrives goes through `receive`, awaited or not.
"""

import secrets
from array import array
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from draftd.client.draft import MalformedTailError, Tails, known
from draftd.client.hidden_states import fill_hidden
from draftd.client.limits import Limits
from draftd.client.mirror import Mirror
from draftd.client.mirrors import Mirrors, add_closes, add_syncs
from draftd.client.pacing import PacingOptions, fill_greeting
from draftd.client.rows import RowColumns, Rows, Wish, fill_commit
from draftd.client.standing import Answer, Standing
from draftd.client.tail_buffer import TailBuffer
from draftd.client.tape import NewWindows
from draftd.client.tape_buffer import TapeBuffer
from draftd.client.under_way import Unanswered, UnderWay
from draftd.wire import (
    NO_TAIL,
    PROTOCOL,
    Error,
    Frame,
    Hello,
    Namespace,
    Reason,
    Status,
    StepReply,
    TailKind,
    VerifyCommit,
)

MOST_ATTEMPTS = 3  # of one message: a drafter that knows nobody, and one with lower limits, get it once more


@dataclass(slots=True)
class Outgoing:
    """Frames to send, in order; `step` is the number that the answer to the last one carries."""

    step: int
    frames: list[bytes]
    rows: tuple[bytes, bytes]  # handle and epoch columns: the answer has the same


class ClientCore:
    """The state and the rules of one client.

    Makes one call at a time: whoever shares it between threads keeps them apart. `namespace` and `vocabulary_size`
    are what the client's requests usually state; the greeting says so.
    """

    def __init__(self, verifier: str, namespace: Namespace, vocabulary_size: int, pacing: PacingOptions) -> None:
        """Raises ValueError or TypeError for an option that can't be meant."""
        self.standing = Standing(namespace, vocabulary_size)
        self.mirrors = Mirrors()
        self.last_core_micros = 0
        self._vocabulary_size = vocabulary_size
        self._hello = Hello(
            protocol=PROTOCOL,
            verifier=verifier,
            incarnation=secrets.randbits(63) + 1,  # one per life of this client; not 0
            accepts=list(TailKind),
            tenant=namespace.tenant,
            model=namespace.model,
            tokenizer=namespace.tokenizer or "",
            vocabulary_size=vocabulary_size,
        )
        fill_greeting(self._hello, pacing)
        self._incarnation = self._hello.incarnation
        self._steps = count(1)
        self._tail_buffer = TailBuffer(self.standing, vocabulary_size)
        self._tape_buffer = TapeBuffer(self.standing, self.mirrors, vocabulary_size)
        self._under_way = UnderWay(self.standing, self.mirrors, self._tail_buffer, self._tape_buffer)
        self._columns = RowColumns(self.mirrors)

    # Conversations

    def exchange(
        self, rows: Rows, wish: Wish | None, *, opening: Mirror | None = None, attempts: int = MOST_ATTEMPTS
    ) -> Generator[Outgoing, Answer, Tails]:
        """Commit and ask for drafts. Yields what to send, wants the answer, returns the tails, one per row.

        With an opening, the answer comes when its text is indexed. Rows that one frame does not take go in several,
        one after the other: each stands or falls alone.
        """
        rows = self._read(rows)
        parts = rows.parts(self._under_way.limits)
        if len(parts) == 1:
            return (yield from self._converse(rows, wish, opening, attempts))
        tails: list[Tails] = []
        core_micros = 0
        budget = wish.budget if wish else None
        rows_left = len(rows.mirrors)
        for part in parts:
            part_wish = wish
            if wish is not None:
                others = len(rows.mirrors) - len(part.mirrors) + sum(drafted.nodes for drafted in tails)
                part_wish = replace(wish, budget=budget).share(len(part.mirrors), rows_left)
                part_wish = part_wish.beside(others, is_first=not tails)
            tails.append((yield from self._converse(part, part_wish, None, attempts)))
            core_micros += self.last_core_micros
            budget = budget - tails[-1].nodes if budget is not None else None
            rows_left -= len(part.mirrors)
        self.last_core_micros = core_micros
        return Tails.joined(tails)

    def _converse(
        self, rows: Rows, wish: Wish | None, opening: Mirror | None, attempts: int
    ) -> Generator[Outgoing, Answer, Tails]:
        limits = self._under_way.limits
        outgoing = self._build(rows, wish, opening, awaited=True)
        answer = yield outgoing
        if attempts > 1 and isinstance(answer, Error) and self._may_help(answer, limits):
            return (yield from self.exchange(rows.without_tokens(), wish, opening=opening, attempts=attempts - 1))
        return self._finish(rows.mirrors, outgoing, answer)

    def _may_help(self, error: Error, limits: Limits) -> bool:
        """To say it again: with everything that the drafter lacks, or within the limits that it stated since."""
        lower_limits = error.status == Status.LIMIT_EXCEEDED and self._under_way.limits != limits
        return error.status == Status.NEED_HELLO or lower_limits

    def post(self, rows: Rows, *, opening: Mirror | None = None) -> list[Outgoing]:
        """Commits, closes or an opening whose answer nobody waits for."""
        parts = self._read(rows).parts(self._under_way.limits)
        return [self._build(part, None, opening, awaited=False) for part in parts]

    def post_ahead(self, rows: Rows, wish: Wish) -> list[Outgoing]:
        """Commits and a wish whose answer nobody waits for: `left` gives what came of it, once it has come."""
        rows = self._read(rows)
        parts = rows.parts(self._under_way.limits)
        if len(parts) == 1:
            return [self._build(rows, wish, None, awaited=False)]
        of = len(rows.mirrors)
        shares = [
            share.beside(of - len(part.mirrors), is_first=part is parts[0])
            for part, share in zip(parts, wish.shares([len(part.mirrors) for part in parts]), strict=True)
        ]
        return [self._build(part, share, None, awaited=False) for part, share in zip(parts, shares, strict=True)]

    def left(self, mirrors: Sequence[Mirror], wish: Wish) -> Callable[[], Tails]:
        """What is left of each request's newest tail, or, where tapes are wished for, what they say.

        It is called without the core: what it looks at changes only while frames are built and received."""
        if wish.tapes:
            return self._tape_buffer.drafts(mirrors, wish.max_nodes, wish.budget)
        tails = self._tail_buffer.left(mirrors, wish)
        return lambda: tails

    def windows(self, mirrors: Sequence[Mirror]) -> list[NewWindows]:
        """The windows that came for each request since the last call."""
        return self._tape_buffer.windows(mirrors)

    def gave_up(self, outgoing: Outgoing, reason: Reason) -> None:
        """No answer came in time (LATE), or the message was lost with the connection (any other reason)."""
        self._under_way.gave_up(outgoing.step, reason)

    def receive(self, data: bytes) -> tuple[int, StepReply | Error] | None:
        """Apply one frame. Returns the step it answers and the answer, where somebody waits for it."""
        return self._under_way.receive(data)

    def _read(self, rows: Rows) -> Rows:
        """Without hidden states, where nobody reads them."""
        return rows if rows.hidden is None or self.standing.wants_hidden_states else rows.without_states()

    @property
    def expects_answers(self) -> bool:
        """Is any message under way?"""
        return self._under_way.expects_answers

    # What goes out

    def _build(self, rows: Rows, wish: Wish | None, opening: Mirror | None, awaited: bool) -> Outgoing:
        limits = self._under_way.limits
        identity = self._columns.of(rows.mirrors)  # first: it refuses what can't be meant
        if rows.size > limits.payload_bytes:
            rows = self._shortened(rows, limits)
        frames = [] if self._under_way.greeted_in else [self._greeting()]
        closes = self.mirrors.take_closes(limits)
        if closes and (last_words := self._to_sync([mirror for mirror, _ in closes], limits)):
            # Goes first, because a step applies its closes before its syncs: all of a closed text can be shared.
            frames.append(self._sync_frame(last_words))
        mirrors = rows.mirrors
        synced = self._to_sync(mirrors if opening is None else [opening], limits)
        together = not synced or rows.size + sum(mirror.sync_bytes for mirror in synced) <= limits.payload_bytes
        if not together:
            frames.append(self._sync_frame(synced))
        frame = Frame()
        batch = frame.step
        step = batch.step = next(self._steps)
        batch.verifier = self._incarnation
        batch.wait = awaited and opening is not None
        if closes:
            add_closes(batch, closes)
        if synced and together:
            add_syncs(batch, synced)
        starts = [mirror.prompt_length + len(mirror.output) for mirror in mirrors]  # not .length: this is the hot path
        if mirrors:
            self._fill_commit(batch.commit, identity, rows, starts, wish)
            for mirror, row in zip(mirrors, rows.tokens, strict=True):
                mirror.output.extend(row)
                mirror.tail_base, mirror.part = NO_TAIL, None  # told_of_no_draft(), by hand: this is the hot path
                if awaited:
                    mirror.named_from = step
                else:
                    mirror.asks_ahead(step)
        news = self._tape_buffer.news
        if wish:
            wish.fill(batch, news)
        frames.append(frame.SerializeToString())
        ahead = identity if wish is not None and not awaited else None
        self._under_way.sent(step, Unanswered(mirrors, starts, synced, closes, awaited, rows=ahead, tape_news=news))
        return Outgoing(step, frames, identity)

    def _shortened(self, rows: Rows, limits: Limits) -> Rows:
        """Of one row that is longer than any frame, what a frame takes: a sync may tell the rest."""
        rows = rows.with_newest_states(limits)
        if rows.size <= limits.payload_bytes:
            return rows
        self.mirrors.miss(rows.mirrors, rows.tokens)
        return rows.without_tokens()

    def _fill_commit(
        self, commit: VerifyCommit, identity: tuple[bytes, bytes], rows: Rows, starts: list[int], wish: Wish | None
    ) -> None:
        commit.request, commit.epoch = identity
        fill_commit(commit, rows, starts, wish.asked_nodes if wish else 0)
        if rows.hidden is not None:
            lengths = [start + len(tokens) for start, tokens in zip(starts, rows.tokens, strict=True)]
            for row, problem in fill_hidden(commit.hidden, rows.hidden, lengths).items():
                self.standing.refused(f"request {rows.mirrors[row].opening.request_id!r}: {problem}")

    def _greeting(self) -> bytes:
        self._under_way.greeted_in = next(self._steps)
        self.standing.counters.hellos += 1
        return Frame(hello=self._hello).SerializeToString()

    def _to_sync(self, mirrors: Sequence[Mirror], limits: Limits) -> list[Mirror]:
        synced, too_long = self.mirrors.take_unsynced(mirrors, limits)
        self.standing.counters.syncs += len(synced)
        for mirror in too_long:
            self.standing.counters.row_errors += 1
            self.standing.refused(
                f"request {mirror.opening.request_id!r}: LIMIT_EXCEEDED: to open it takes {mirror.sync_bytes} bytes; "
                f"the drafter takes {limits.payload_bytes} (engine.max_frame_bytes is {limits.frame_bytes})"
            )
        return synced

    def _sync_frame(self, mirrors: list[Mirror]) -> bytes:
        """A step of its own."""
        frame = Frame()
        frame.step.verifier = self._incarnation
        frame.step.step = next(self._steps)
        add_syncs(frame.step, mirrors)
        self._under_way.sent(frame.step.step, Unanswered([], [], mirrors, [], awaited=False))
        return frame.SerializeToString()

    # What the caller gets

    def _finish(self, mirrors: list[Mirror], outgoing: Outgoing, answer: Answer) -> Tails:
        if isinstance(answer, StepReply):
            try:
                return self._deliver(mirrors, outgoing, answer)
            except MalformedTailError as error:
                self.standing.counters.unknown_frames += 1
                self.standing.last_error = f"the drafter's answer cannot be read: {error}"
                answer = Error(status=Status.INTERNAL)
        if isinstance(answer, Error) and answer.status == Status.SHUTTING_DOWN:
            answer = Reason.UNREACHABLE
        if isinstance(answer, Error):
            self.standing.counters.refused += 1
            reason, status = Reason.REFUSED, known(Status, answer.status, Status.INTERNAL)
        else:
            reason, status = answer, Status.OK
        return self.no_tails(mirrors, reason, status)

    def _deliver(self, mirrors: list[Mirror], outgoing: Outgoing, reply: StepReply) -> Tails:
        tails = Tails.received(reply.tail, outgoing.rows, self._vocabulary_size)
        self.standing.counters.unknown_tails += tails.unknown_kinds()
        for mirror, base in zip(mirrors, array("I", tails.base), strict=True):
            mirror.tail_base = base
        if any(tails.reason):
            for mirror, reason in zip(mirrors, tails.reason, strict=True):
                if reason != Reason.NOT_EMPTY:
                    mirror.told_of_no_draft()
            # Of a request that it refused to open, a drafter says NEED_SYNC; the caller wants to know why.
            tails.status = bytes(
                mirror.refused if status == Status.NEED_SYNC and mirror.refused else status
                for mirror, status in zip(mirrors, tails.status, strict=True)
            )
        self.standing.counters.steps += 1
        self.last_core_micros = reply.core_micros
        return tails

    def no_tails(self, mirrors: Sequence[Mirror], reason: Reason, status: Status = Status.OK) -> Tails:
        """Empty drafts that the client gives by itself."""
        for mirror in mirrors:
            mirror.told_of_no_draft()
        return Tails.empty(reason, [mirror.epoch for mirror in mirrors], [mirror.length for mirror in mirrors], status)

    def not_asked(self, rows: Rows, reason: Reason) -> Tails:
        """Nobody is asked now: what the rows say is told by a later sync."""
        self.mirrors.miss(rows.mirrors, rows.tokens)
        return self.no_tails(rows.mirrors, reason)
