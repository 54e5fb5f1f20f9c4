"""Messages under way: what each of them carried, and what the drafter's answers to them mean."""

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from draftd.client.draft import known
from draftd.client.limits import Limits, stated_limits
from draftd.client.mirror import Mirror
from draftd.client.mirrors import Close, Mirrors
from draftd.client.standing import Standing
from draftd.client.tail_buffer import TailBuffer
from draftd.client.tape_buffer import TapeBuffer
from draftd.wire import Error, Frame, HelloReply, Reason, RowError, Status, StepReply

MOST_UNANSWERED = 4096  # steps remembered while their answers are out


@dataclass(slots=True)
class Unanswered:
    """What a step carried, until its answer comes. `awaited`: somebody still waits for it."""

    mirrors: list[Mirror]
    starts: list[int]
    synced: list[Mirror]
    closes: list[Close]
    awaited: bool
    late: bool = False
    rows: tuple[bytes, bytes] | None = None  # of a step ahead: handle and epoch columns, which the answer has too
    tape_news: int = 0  # that it stated


class UnderWay:
    """Keeps the mirrors and the drafter's standing true to what arrives, and to what does not."""

    def __init__(self, standing: Standing, mirrors: Mirrors, tail_buffer: TailBuffer, tape_buffer: TapeBuffer) -> None:
        self.standing = standing
        self._tail_buffer = tail_buffer
        self._tape_buffer = tape_buffer
        self.mirrors = mirrors
        self.limits = Limits()
        self.greeted_in = 0  # the step our latest Hello went out with; 0: it has to be sent (again)
        self._unanswered: dict[int, Unanswered] = {}

    @property
    def expects_answers(self) -> bool:
        return bool(self._unanswered)

    def sent(self, step: int, carried: Unanswered) -> None:
        self._unanswered[step] = carried
        if len(self._unanswered) > MOST_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]

    def gave_up(self, step: int, reason: Reason) -> None:
        """No answer came in time (LATE), or the message was lost with the connection (any other reason)."""
        unanswered = self._unanswered.get(step)
        if unanswered is None:
            return
        if reason == Reason.LATE:
            # It may come yet: what it says of the requests will count, its drafts won't.
            unanswered.awaited, unanswered.late = False, True
            if self.standing.drafter is None:
                self.greeted_in = 0  # nor did it answer our greeting
            return
        del self._unanswered[step]
        self.greeted_in = 0
        self.mirrors.put_back(unanswered.closes)
        self._lost(unanswered)

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
        foreign = self.standing.drafter is not None and reply.drafter != self.standing.drafter.incarnation
        if unanswered.rows is not None:
            self.standing.breaker.succeeded()
            self._tail_buffer.arrived(reply, unanswered.mirrors, unanswered.rows, foreign=foreign)
            self._tape_buffer.arrived(reply, unanswered.mirrors, unanswered.rows, unanswered.tape_news, foreign=foreign)
        if foreign:
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
            self.standing.refused(f"request {mirror.opening.request_id!r}: {_describe(error)}")
            if error.status == Status.INVALID_TOKEN and mirror in unanswered.mirrors and mirror.handle not in missing:
                # The drafter took nothing of that commit; neither do we.
                mirror.cut(unanswered.starts[unanswered.mirrors.index(mirror)])
            elif mirror in unanswered.synced:
                mirror.refused = known(Status, error.status, Status.INTERNAL)

    def _take_error(self, error: Error) -> tuple[int, Error] | None:
        unanswered = self._unanswered.pop(error.step, None)
        if error.status == Status.NEED_HELLO:
            if error.step >= self.greeted_in:
                self.greeted_in = 0
                self.standing.drafter = None
                self.mirrors.need_sync_all(synced_before=error.step + 1)
            if unanswered is not None:
                self.mirrors.put_back(unanswered.closes)
        else:
            self.standing.refused(_describe(error))
        if unanswered is None:
            return None
        self._lost(unanswered)
        return (error.step, error) if unanswered.awaited else None

    def _take_hello_reply(self, reply: HelloReply) -> None:
        if self.standing.drafter is not None and self.standing.drafter.incarnation != reply.incarnation:
            self.mirrors.need_sync_all(synced_before=self.greeted_in)
        self.standing.introduced(reply)
        self.limits = stated_limits(reply)

    def _lost(self, unanswered: Unanswered) -> None:
        self.mirrors.need_sync([*unanswered.mirrors, *unanswered.synced])


def _describe(error: Error | RowError) -> str:
    name = known(Status, error.status, Status.INTERNAL).name
    return f"{name}: {error.message}" if error.message else name
