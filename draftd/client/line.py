"""The one channel of a blocking client and the core that speaks over it, for any number of threads."""

import threading
import time

from draftd.client.channel import Channel, ChannelError
from draftd.client.core import ClientCore, Outgoing
from draftd.client.draft import Tails
from draftd.client.mirror import Mirror
from draftd.client.rows import Rows, Wish
from draftd.client.standing import Answer
from draftd.client.tape import NewWindows
from draftd.wire import Reason


class Line:
    """Two locks. The turn is for the channel: its holder may wait for the drafter, up to its own deadline, and
    nobody waits for the turn longer than his. `guard` is for the core: held for a touch, never while waiting.
    """

    def __init__(self, channel: Channel, core: ClientCore) -> None:
        self.guard = threading.Lock()  # every use of the core, also by the verbs, is under it
        self.closed = False
        self._channel = channel
        self._channel_closed = False
        self._core = core
        self._turn = threading.Lock()

    def ask(
        self, rows: Rows, wish: Wish | None, until: float, *, opening: Mirror | None = None, insist: bool = False
    ) -> Tails:
        """Commit and wait for drafts until that time of the monotonic clock. `insist`: the breaker has no say."""
        if not self._take_turn(until):
            with self.guard:
                self._core.standing.counters.late += 1
                return self._core.not_asked(rows, Reason.LATE)
        try:
            with self.guard:
                if self.closed:
                    return self._core.not_asked(rows, Reason.CLOSED)
                if not insist and not self._core.standing.may_ask(time.monotonic()):
                    return self._core.not_asked(rows, Reason.OFF)
            return self._converse(rows, wish, until, opening)
        finally:
            self._end_turn()

    def post(self, rows: Rows, until: float, *, opening: Mirror | None = None) -> None:
        """Send without waiting for an answer. What can't be sent is repaired by a later sync."""
        if not self._take_turn(until):
            with self.guard:
                self._core.mirrors.miss(rows.mirrors, rows.tokens)
            return
        try:
            with self.guard:
                if self.closed or self._core.standing.breaker.is_open:
                    self._core.mirrors.miss(rows.mirrors, rows.tokens)
                    return
            self._drain()
            with self.guard:
                messages = self._core.post(rows, opening=opening)
            for outgoing in messages:
                if not self._channel.send(outgoing.frames, 0):
                    self._give_up(outgoing, Reason.UNREACHABLE)
        finally:
            self._end_turn()

    def post_ahead(self, rows: Rows, wish: Wish, until: float) -> Tails | None:
        """Commit and ask without waiting for the answer. Returns empty tails that say why where nobody was asked."""
        if not self._take_turn(until):
            with self.guard:
                return self._core.not_asked(rows, Reason.LATE)
        try:
            with self.guard:
                if self.closed:
                    return self._core.not_asked(rows, Reason.CLOSED)
                if not self._core.standing.may_ask(time.monotonic()):
                    return self._core.not_asked(rows, Reason.OFF)
            self._drain()
            with self.guard:
                messages = self._core.post_ahead(rows, wish)
            for outgoing in messages:
                if not self._channel.send(outgoing.frames, 0):
                    self._give_up(outgoing, Reason.UNREACHABLE)
                    with self.guard:
                        self._core.standing.judge(Reason.UNREACHABLE, time.monotonic())
            return None
        finally:
            self._end_turn()

    def left(self, mirrors: list[Mirror], wish: Wish) -> Tails:
        """Of the tails that came so far, or what the tapes say."""
        with self.guard:
            left = self._core.left(mirrors, wish)
        return left()

    def windows(self, mirrors: list[Mirror]) -> list[NewWindows]:
        """That came since the last call."""
        with self.guard:
            return self._core.windows(mirrors)

    def close(self, until: float) -> None:
        """Nothing is asked any more. If another has the turn until then, the channel closes when that turn ends."""
        self.closed = True
        if self._take_turn(until):
            self._end_turn()

    def _take_turn(self, until: float) -> bool:
        return self._turn.acquire(timeout=max(0.0, until - time.monotonic()))

    def _end_turn(self) -> None:
        self._turn.release()
        # Looked at without the turn: whoever closes after this look finds the turn free.
        if self.closed and self._turn.acquire(blocking=False):
            if not self._channel_closed:
                self._channel_closed = True
                self._channel.close()
            self._turn.release()

    # With the turn held

    def _converse(self, rows: Rows, wish: Wish | None, until: float, opening: Mirror | None) -> Tails:
        self._drain()
        with self.guard:
            exchange = self._core.exchange(rows, wish, opening=opening)
            outgoing = next(exchange)
        while True:
            answer = self._round_trip(outgoing, until)
            with self.guard:
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
            if frame is None:
                continue
            with self.guard:
                answered = self._core.receive(frame)
            if answered is not None and answered[0] == outgoing.step:
                return answered[1]
        return self._give_up(outgoing, Reason.LATE)

    def _give_up(self, outgoing: Outgoing, reason: Reason) -> Reason:
        with self.guard:
            self._core.gave_up(outgoing, reason)
        return reason

    def _drain(self) -> None:
        """Apply what came since: late answers, answers nobody waits for."""
        try:
            while self._core.expects_answers and (frame := self._channel.receive(0)) is not None:
                with self.guard:
                    self._core.receive(frame)
        except ChannelError:
            pass  # the next send finds out and tries a new connection
