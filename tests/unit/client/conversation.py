"""A client's core and a real engine, with frames between them that get lost, late and mixed up."""

from collections.abc import Callable

from draftd.client import Namespace, Reason
from draftd.client.columns import token_column
from draftd.client.core import ClientCore, Outgoing
from draftd.client.draft import Draft, Tails
from draftd.client.mirror import Mirror
from draftd.client.opening import opening_message
from draftd.client.rows import Rows, Wish
from draftd.client.standing import Answer
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import Error, Frame, StepReply

REPEATING = [1, 2, 3, 4, 5, 1, 2, 3]  # goes on with 4, 5


class Conversation:
    """A core, an engine, and what happens to the frames between them."""

    def __init__(self, settings: EngineSettings = EngineSettings()) -> None:  # noqa: B008  (frozen)
        self.core = ClientCore("test", Namespace(), 0, {})
        self.engine = Engine(settings)
        self.longest_frame = 0  # of those that were delivered, in bytes
        self.deliver: Callable[[bytes], bytes | None] = lambda frame: self.engine.handle(frame).reply
        self.frames: list[Frame] = []

    def open(self, request_id: str = "r", prompt: list[int] = REPEATING, vocabulary_size: int = 0) -> Mirror:
        opening = opening_message(request_id, Namespace(), vocabulary_size, {})
        return self.core.mirrors.open(opening, token_column(prompt))

    def step(self, *mirrors: Mirror, tokens: list[int] | None = None, budget: int | None = None) -> list[Draft]:
        """Every mirror gets the same tokens."""
        exchange = self.core.exchange(Rows(list(mirrors), [tokens or []] * len(mirrors)), Wish(2, budget))
        answer = self.round_trip(next(exchange))
        while True:
            try:
                answer = self.round_trip(exchange.send(answer))
            except StopIteration as end:
                tails: Tails = end.value
                return tails.drafts()

    def post(self, mirror: Mirror, tokens: list[int]) -> None:
        for outgoing in self.core.post(Rows([mirror], [tokens])):
            for frame in outgoing.frames:
                self.send(frame)

    def round_trip(self, outgoing: Outgoing) -> Answer:
        for frame in outgoing.frames:
            answered = self.send(frame)
        if answered is not None and answered[0] == outgoing.step:
            return answered[1]
        self.core.gave_up(outgoing, Reason.LATE)
        return Reason.LATE

    def send(self, frame: bytes) -> tuple[int, StepReply | Error] | None:
        self.frames.append(Frame.FromString(frame))
        self.longest_frame = max(self.longest_frame, len(frame))
        reply = self.deliver(frame)
        return None if reply is None else self.core.receive(reply)

    def lose_next(self) -> None:
        """The next frame reaches nobody."""
        deliver = self.deliver

        def lost(_frame: bytes) -> None:
            self.deliver = deliver

        self.deliver = lost

    def lose_connection(self, rows: Rows) -> None:
        """A message that goes out as the connection breaks."""
        for outgoing in self.core.post(rows):
            self.core.gave_up(outgoing, Reason.UNREACHABLE)

    def restart_drafter(self) -> None:
        self.engine.close()
        self.engine = Engine(EngineSettings())

    def wait_until_indexed(self) -> None:
        (outgoing,) = self.core.post(Rows([], []))
        batch = Frame.FromString(outgoing.frames[-1])
        batch.step.wait = True
        answer = self.engine.handle(batch.SerializeToString())
        assert self.engine.wait_indexed(answer.ticket, timeout=30)

    def sent(self) -> list[str]:
        """What went out since the last call, for example ["hello", "sync commit"]."""
        names = []
        for frame in self.frames:
            parts = [
                part for part in ("close", "sync", "commit") if part in {f.name for f, _ in frame.step.ListFields()}
            ]
            names.append("hello" if frame.HasField("hello") else " ".join(parts))
        self.frames.clear()
        return names
