"""The client without sockets and clocks: builds frames, reads frames, keeps mirrors and drafter in step.

Every client drives it the same way. `exchange` is a conversation: it yields what to send and is told what came
back. `post` is the one-way form. Every frame that arrives goes through `receive`, awaited or not.
"""

import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import count

from google.protobuf.message import DecodeError

from draftd.client.columns import token_column
from draftd.client.draft import MalformedTailError, Tails, known
from draftd.client.mirror import Mirror
from draftd.client.mirrors import Close, Mirrors, add_closes
from draftd.client.rows import RowColumns, Verified, Wish, fill_commit
from draftd.client.standing import Answer, Standing
from draftd.wire import (
    PROTOCOL,
    Error,
    Frame,
    Hello,
    HelloReply,
    Reason,
    RowError,
    Status,
    StepReply,
    TailKind,
)

MOST_UNANSWERED = 4096  # steps remembered while their answers are out


@dataclass(slots=True)
class Outgoing:
    """Frames to send, in order; `step` is the number that the answer to the last one carries."""

    step: int
    frames: list[bytes]
    rows: tuple[bytes, bytes]  # handle and epoch columns: the answer has the same


@dataclass(slots=True)
class Unanswered:
    """What a step carried, until its answer comes. `awaited`: somebody still waits for it."""

    mirrors: list[Mirror]
    starts: list[int]
    synced: list[Mirror]
    closes: list[Close]
    awaited: bool
    late: bool = False


class ClientCore:
    def __init__(self, verifier: str) -> None:
        self.standing = Standing()
        self.mirrors = Mirrors()
        self.last_core_micros = 0
        self._verifier = verifier
        self._incarnation = secrets.randbits(63) + 1  # one per life of this client; not 0
        self._steps = count(1)
        self._greeted_in = 0  # the step our latest Hello went out with; 0: it has to be sent (again)
        self._unanswered: dict[int, Unanswered] = {}
        self._columns = RowColumns()

    # Conversations

    def exchange(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        wish: Wish | None,
        *,
        verified: Sequence[Verified] | None = None,
        opening: Mirror | None = None,
    ) -> Generator[Outgoing, Answer, Tails]:
        """Commit and ask for drafts, one row per mirror. Yields what to send, wants the answer, returns the tails.

        With an opening, the answer comes when its text is indexed. A drafter that does not know us gets a second,
        complete message within the same conversation.
        """
        outgoing = self._build(mirrors, tokens, wish, verified, opening, awaited=True)
        answer = yield outgoing
        if isinstance(answer, Error) and answer.status == Status.NEED_HELLO:
            nothing: list[Sequence[int]] = [()] * len(mirrors)
            outgoing = self._build(mirrors, nothing, wish, None, opening, awaited=True)
            answer = yield outgoing
        return self._finish(mirrors, outgoing, answer)

    def post(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        *,
        verified: Sequence[Verified] | None = None,
        opening: Mirror | None = None,
    ) -> Outgoing:
        """Commits, closes or an opening whose answer nobody waits for."""
        outgoing = self._build(mirrors, tokens, None, verified, opening, awaited=False)
        for mirror in mirrors:
            mirror.has_tail = False
        return outgoing

    def gave_up(self, outgoing: Outgoing, reason: Reason) -> None:
        """No answer came in time (LATE), or the message was lost with the connection (UNREACHABLE)."""
        unanswered = self._unanswered.get(outgoing.step)
        if unanswered is None:
            return
        if reason == Reason.LATE:
            # It may come yet: what it says of the requests will count, its drafts won't.
            unanswered.awaited, unanswered.late = False, True
            return
        del self._unanswered[outgoing.step]
        self._greeted_in = 0
        self.mirrors.put_back(unanswered.closes)
        self._lost(unanswered)

    @property
    def expects_answers(self) -> bool:
        return bool(self._unanswered)

    def _build(
        self,
        mirrors: list[Mirror],
        tokens: Sequence[Sequence[int]],
        wish: Wish | None,
        verified: Sequence[Verified] | None,
        opening: Mirror | None,
        awaited: bool,
    ) -> Outgoing:
        flat: list[int] = []
        for row in tokens:
            flat.extend(row)
        new_tokens = token_column(flat)  # raises before anything has changed
        frames = [] if self._greeted_in else [self._hello()]
        closes = self.mirrors.take_closes()
        if closes and (last_words := self._last_words(closes)):
            frames.append(last_words)
        frame = Frame()
        batch = frame.step
        step = batch.step = next(self._steps)
        batch.verifier = self._incarnation
        batch.wait = awaited and opening is not None
        if closes:
            add_closes(batch, closes)
        synced = self.mirrors.add_syncs(batch, mirrors if opening is None else [opening])
        self.standing.counters.syncs += len(synced)
        starts = [mirror.prompt_length + len(mirror.output) for mirror in mirrors]  # not .length: this is the hot path
        rows = self._columns.of(mirrors)
        if mirrors:
            commit = batch.commit
            commit.request, commit.epoch = rows
            commit.tokens = new_tokens
            fill_commit(commit, mirrors, starts, tokens, verified, wish.max_nodes if wish else 0)
            for mirror, row in zip(mirrors, tokens, strict=True):
                mirror.output.extend(row)
        if wish:
            batch.budget = wish.budget or 0
            batch.min_survival = wish.min_survival
        frames.append(frame.SerializeToString())
        self._unanswered[step] = Unanswered(mirrors, starts, synced, closes, awaited)
        if len(self._unanswered) > MOST_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]
        return Outgoing(step, frames, rows)

    def _hello(self) -> bytes:
        self._greeted_in = next(self._steps)
        self.standing.counters.hellos += 1
        hello = Hello(protocol=PROTOCOL, verifier=self._verifier, incarnation=self._incarnation, accepts=list(TailKind))
        return Frame(hello=hello).SerializeToString()

    def _last_words(self, closes: Sequence[Close]) -> bytes | None:
        """A step that goes first, because a step applies its closes before its syncs.

        It tells what the drafter lacks of requests about to be closed, so that all of it can be shared. None:
        nothing is lacking.
        """
        frame = Frame()
        frame.step.verifier = self._incarnation
        frame.step.step = next(self._steps)
        synced = self.mirrors.add_syncs(frame.step, [mirror for mirror, _ in closes])
        if not synced:
            return None
        self.standing.counters.syncs += len(synced)
        self._unanswered[frame.step.step] = Unanswered([], [], synced, [], awaited=False)
        return frame.SerializeToString()

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
        tails = Tails(reply.tail)
        if (reply.tail.request, reply.tail.epoch) != outgoing.rows:
            raise MalformedTailError("its rows are not those that were asked for")
        self.standing.counters.unknown_tails += tails.unknown_kinds()
        for mirror in mirrors:
            mirror.has_tail = True
        if any(tails.reason):
            for mirror, reason in zip(mirrors, tails.reason, strict=True):
                mirror.has_tail = reason == Reason.NOT_EMPTY
        self.standing.counters.steps += 1
        self.last_core_micros = reply.core_micros
        return tails

    def no_tails(self, mirrors: Sequence[Mirror], reason: Reason, status: Status = Status.OK) -> Tails:
        """Empty drafts that the client gives by itself."""
        for mirror in mirrors:
            mirror.has_tail = False
        return Tails.empty(reason, [mirror.epoch for mirror in mirrors], [mirror.length for mirror in mirrors], status)

    # What arrives

    def receive(self, data: bytes) -> tuple[int, StepReply | Error] | None:
        """Apply one frame. Returns the step it answers and the answer, where somebody waits for it."""
        try:
            frame = Frame.FromString(data)
        except DecodeError:
            self.standing.counters.unknown_frames += 1
            return None
        match frame.WhichOneof("body"):
            case "reply":
                return self._take_reply(frame.reply)
            case "error":
                return self._take_error(frame.error)
            case "hello_reply":
                self._take_hello_reply(frame.hello_reply)
            case _:
                self.standing.counters.unknown_frames += 1
        return None

    def _take_reply(self, reply: StepReply) -> tuple[int, StepReply] | None:
        if reply.step == 0:
            self.standing.counters.unasked_tails += 1
            return None
        unanswered = self._unanswered.pop(reply.step, None)
        if unanswered is None:
            self.standing.counters.unknown_frames += 1
            return None
        if self.standing.drafter is not None and reply.drafter != self.standing.drafter.incarnation:
            self.standing.drafter = None
            self.mirrors.need_sync_all(synced_before=reply.step)
        if reply.errors:
            self._take_row_errors(reply, unanswered)
        if unanswered.awaited:
            return reply.step, reply
        self.standing.counters.late_replies += unanswered.late
        return None

    def _take_row_errors(self, reply: StepReply, unanswered: Unanswered) -> None:
        missing = {error.request for error in reply.errors if error.status == Status.NEED_SYNC}
        for error in reply.errors:
            self.standing.counters.row_errors += 1
            mirror = self.mirrors.find(error.request, error.epoch)
            if mirror is None:
                continue
            if error.status == Status.NEED_SYNC:
                # Older answers must not undo a sync under way; a refused sync is not repeated for nothing.
                if reply.step > mirror.synced_in and mirror.refused == Status.OK:
                    self.mirrors.need_sync([mirror])
                continue
            self.standing.last_error = f"request {mirror.opening.request_id!r}: {_describe(error)}"
            if error.status == Status.INVALID_TOKEN and mirror in unanswered.mirrors and mirror.handle not in missing:
                # The drafter took nothing of that commit; neither do we.
                mirror.cut(unanswered.starts[unanswered.mirrors.index(mirror)])
            elif mirror in unanswered.synced:
                mirror.refused = known(Status, error.status, Status.INTERNAL)

    def _take_error(self, error: Error) -> tuple[int, Error] | None:
        unanswered = self._unanswered.pop(error.step, None)
        if error.status == Status.NEED_HELLO:
            if error.step >= self._greeted_in:
                self._greeted_in = 0
                self.standing.drafter = None
                self.mirrors.need_sync_all(synced_before=error.step + 1)
            if unanswered is not None:
                self.mirrors.put_back(unanswered.closes)
        else:
            self.standing.last_error = _describe(error)
        if unanswered is None:
            return None
        self._lost(unanswered)
        return (error.step, error) if unanswered.awaited else None

    def _take_hello_reply(self, reply: HelloReply) -> None:
        if self.standing.drafter is not None and self.standing.drafter.incarnation != reply.incarnation:
            self.mirrors.need_sync_all(synced_before=self._greeted_in)
        self.standing.drafter = reply

    def _lost(self, unanswered: Unanswered) -> None:
        self.mirrors.need_sync([*unanswered.mirrors, *unanswered.synced])


def _describe(error: Error | RowError) -> str:
    name = known(Status, error.status, Status.INTERNAL).name
    return f"{name}: {error.message}" if error.message else name
