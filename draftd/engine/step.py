"""One engine step, from bytes to bytes. The page to read first.

A verifier sends one StepBatch per step of its engine: what became of the last drafts, and the wish for the next. The
order here is the order of the protocol: closes, opens, commits, drafts. The hot part is one call into the core for
the whole batch, on columns that pass through Python unread.
"""

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from google.protobuf.message import DecodeError

from draftd import native
from draftd.config import DraftingSettings, EngineSettings
from draftd.engine.checked_priors import checked_priors
from draftd.engine.explain import Explainer
from draftd.engine.histories import Histories
from draftd.engine.namespaces import Namespaces
from draftd.engine.opening import Opener
from draftd.engine.statistics import Counters, Statistics, collect
from draftd.engine.verifiers import Verifier, Verifiers
from draftd.wire import (
    PROTOCOL,
    DraftClose,
    DraftTail,
    Error,
    Frame,
    Hello,
    HelloReply,
    Namespace,
    Reason,
    RowError,
    Status,
    StepBatch,
    TailKind,
    VerifyCommit,
)

_log = logging.getLogger("draftd.engine")


@dataclass(frozen=True, slots=True)
class Answer:
    """Send `reply` once `Engine.indexed(ticket)`; ticket 0 is at once."""

    reply: bytes
    ticket: int = 0


class Rejected(Exception):
    """A frame that can't be taken as a whole. Nothing of it was applied."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class Engine(Histories):
    """Answers the frames of all verifiers. Thread-safe; every transport of a server shares one."""

    def __init__(
        self,
        settings: EngineSettings,
        drafting: DraftingSettings = DraftingSettings(),  # noqa: B008  (frozen)
        *,
        in_flight: bool = True,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ValueError, which names the file, for priors that can't be used."""
        core = native.Engine(
            session_ttl=settings.session_ttl,
            memory_limit=settings.memory_limit,
            history_limit=settings.history_limit,
            max_nodes=settings.max_nodes,
            in_flight=in_flight,
            learning=drafting.learning,
            priors=checked_priors(drafting.priors),
        )
        super().__init__(core, Namespaces(core, settings.max_corpora), clock)
        self.incarnation = secrets.randbits(64)
        self._settings = settings
        self._wall_clock = wall_clock
        self.explainer = Explainer(self._core, self._namespaces, drafting)
        self._opener = Opener(self._core, self._namespaces, settings.memory_limit, drafting)
        self._counters = Counters()
        self._verifiers = Verifiers()

    def handle(self, frame: bytes, *, shed: bool = False) -> Answer:
        """Answers one frame. Never raises for what a peer sent: that becomes an Error frame, and is counted.

        `shed`: the drafter is behind; commits are taken, drafts are left out.
        """
        message = Frame()
        try:
            self._parse(frame, message)
            match message.WhichOneof("body"):
                case "step":
                    return self._step(message.step, shed)
                case "hello":
                    return self._hello(message.hello)
                case other:
                    raise Rejected(Status.MALFORMED, f"a drafter takes hello and step, not {other or 'nothing'}")
        except Rejected as rejected:
            return self._error(message, rejected.status, str(rejected))
        except Exception:  # noqa: BLE001 - the last line of defence: one frame must not end a transport
            _log.exception("a frame of %d bytes failed", len(frame))
            return self._error(message, Status.INTERNAL, "a defect of the drafter; its log says more")

    def _parse(self, frame: bytes, message: Frame) -> None:
        limit = self._settings.max_frame_bytes
        try:
            message.ParseFromString(frame)  # also one above the limit: its sender waits for an answer to its step
        except DecodeError as error:
            if len(frame) <= limit:
                raise Rejected(Status.MALFORMED, f"no Frame: {error}") from None
        if len(frame) > limit:
            raise Rejected(
                Status.LIMIT_EXCEEDED, f"a frame of {len(frame)} bytes; at most {limit} (engine.max_frame_bytes)"
            )

    def _error(self, message: Frame, status: Status, why: str) -> Answer:
        self._counters.frame_refused(status)
        error = Error(status=status, message=why, step=message.step.step)
        return Answer(Frame(error=error).SerializeToString())

    def _hello(self, hello: Hello) -> Answer:
        if hello.protocol != PROTOCOL:
            raise Rejected(Status.UNSUPPORTED_VERSION, f"protocol {hello.protocol}; this drafter speaks {PROTOCOL}")
        self._verifiers.greet(hello, self._clock())
        _log.debug("verifier %r says hello, incarnation %016x", hello.verifier, hello.incarnation)
        tokenizer = self._namespaces.tokenizer_of(hello.tenant, hello.model)
        reply = HelloReply(
            protocol=PROTOCOL,
            version=version("draftd"),
            incarnation=self.incarnation,
            kinds=[TailKind.TREE, TailKind.CHAIN],
            max_nodes=self._settings.max_nodes,
            max_rows=self._settings.max_rows,
            max_frame_bytes=self._settings.max_frame_bytes,
            tokenizer=tokenizer.fingerprint if tokenizer else "",
            vocabulary_size=tokenizer.vocabulary_size if tokenizer else 0,
        )
        return Answer(Frame(hello_reply=reply).SerializeToString())

    def _step(self, batch: StepBatch, shed: bool) -> Answer:
        now = self._clock()
        verifier = batch.verifier
        takes_trees = self._check(batch, now).takes_trees
        columns = _columns(batch.commit, shed)
        errors: list[RowError] = []

        if batch.close.request:
            closed_at = int(self._wall_clock())
            statuses = self._core.close(verifier, batch.close.request, batch.close.epoch, now, closed_at)
            errors += _close_errors(batch.close, statuses)
        for sync in batch.sync:
            if error := self._opener.open(verifier, sync, now, takes_trees=takes_trees):
                self._counters.sync_refused(Status(error.status))
                errors.append(error)
        began = time.perf_counter()
        tails = self._core.step(verifier, now, columns, batch.budget, batch.min_survival)
        seconds = time.perf_counter() - began

        if batch.commit.max_nodes.strip(b"\0") and not shed:  # drafts were asked for
            self._counters.drafted_in(seconds)
        if tails.status.strip(b"\0"):  # any(), but thirty times faster
            errors += _row_errors(batch.commit, tails)
        # Filled in place: a message handed to another's constructor is copied.
        frame = Frame()
        reply = frame.reply
        reply.drafter = self.incarnation
        reply.step = batch.step
        reply.core_micros = round(seconds * 1e6)
        reply.errors.extend(errors)
        self._fill(reply.tail, batch.commit, tails, shed)
        return Answer(frame.SerializeToString(), self._core.ticket() if batch.wait else 0)

    def _check(self, batch: StepBatch, now: float) -> Verifier:
        """Refuses a batch as a whole, before any of it is applied; or says whose it is."""
        verifier = self._verifiers.heard(batch.verifier, now)
        if verifier is None:
            raise Rejected(Status.NEED_HELLO, "unknown verifier: say hello, then sync the requests anew")
        if batch.step == 0:
            raise Rejected(Status.MALFORMED, "step 0 is for tails nobody asked for")
        rows = len(batch.commit.request) // 4
        if rows > self._settings.max_rows:
            raise Rejected(Status.LIMIT_EXCEEDED, f"{rows} rows; at most {self._settings.max_rows} (engine.max_rows)")
        if not 0.0 <= batch.min_survival <= 1.0:
            raise Rejected(Status.MALFORMED, f"min_survival {batch.min_survival} is not in [0, 1]")
        closes = len(batch.close.reason)
        if not len(batch.close.request) == len(batch.close.epoch) == 4 * closes:
            raise Rejected(
                Status.MALFORMED, f"close: columns request and epoch do not have {closes} entries, as reason"
            )
        return verifier

    def _fill(self, tail: DraftTail, commit: VerifyCommit, tails: native.Tails, shed: bool) -> None:
        tail.request = commit.request
        tail.epoch = commit.epoch
        tail.base = tails.base
        tail.status = tails.status
        tail.reason = self._shed_reasons(commit, tails) if shed else tails.reason
        tail.kind = tails.kind
        tail.node_end = tails.node_end
        tail.tokens = tails.tokens
        tail.parents = tails.parents
        tail.survival = tails.survival
        tail.source = tails.source

    def _shed_reasons(self, commit: VerifyCommit, tails: native.Tails) -> bytes:
        """The core was asked for commits only; rows that wanted a draft are told why there is none."""
        reasons = np.frombuffer(tails.reason, np.uint8).copy()
        left_out = (np.frombuffer(commit.max_nodes, "<u2") > 0) & (reasons == Reason.NOT_ASKED)
        reasons[left_out] = Reason.SHED
        self._counters.left_out(int(left_out.sum()))
        return reasons.tobytes()

    def indexed(self, ticket: int) -> bool:
        """Whether all text sent before `ticket` is indexed."""
        return self._core.indexed(ticket)

    def wait_indexed(self, ticket: int, timeout: float) -> bool:
        """Blocks for at most `timeout` seconds, the interpreter's lock released."""
        return self._core.wait_indexed(ticket, timeout)

    def settle(self, timeout: float) -> bool:
        """Blocks for at most `timeout` seconds, until all text sent so far is indexed; whether it is."""
        return self.wait_indexed(self._core.ticket(), timeout)

    def indexed_fileno(self) -> int:
        """A new eventfd, readable after indexing made progress; one per waiter. Closed with the engine."""
        return self._core.fileno()

    def expire(self) -> int:
        """Drops verifiers and requests silent for longer than engine.session_ttl; how many requests."""
        now = self._clock()
        self._verifiers.forget_silent(now - self._settings.session_ttl)
        return self._core.expire(now)

    def know_tokenizer(self, tenant: str, model: str, fingerprint: str, vocabulary_size: int) -> None:
        """Requests of that tenant and model ("*": any) that state another tokenizer are refused."""
        self._namespaces.know_tokenizer(tenant, model, fingerprint, vocabulary_size)

    def publish_corpus(self, namespace: Namespace, name: str, segments: Sequence[native.Segment]) -> None:
        """These segments, oldest first, whole and at once, in place of what had the name. Raises LimitExceeded."""
        self._namespaces.publish(namespace, name, segments)

    def withdraw_corpus(self, namespace: Namespace, name: str) -> None:
        """Drafts stop reading it; that there is none is no error."""
        self._namespaces.withdraw(namespace, name)

    def statistics(self) -> Statistics:
        return collect(self._core, self._counters)

    def close(self) -> None:
        """Stops indexing. What is sent afterwards is answered, but waits for nothing that is not indexed yet."""
        self._core.stop_indexing()


def _columns(commit: VerifyCommit, shed: bool) -> native.StepColumns:
    """Raises Rejected when they do not fit together."""
    try:
        # By position: names cost more than the call.
        return native.StepColumns(
            commit.request,
            commit.epoch,
            commit.start,
            commit.token_end,
            commit.tokens,
            commit.tail_base,
            commit.verified,
            commit.bitmap_end,
            commit.bitmap,
            bytes(len(commit.max_nodes)) if shed else commit.max_nodes,
        )
    except ValueError as error:
        raise Rejected(Status.MALFORMED, f"commit: {error}") from None


def _close_errors(close: DraftClose, statuses: bytes) -> list[RowError]:
    request, epoch = np.frombuffer(close.request, "<u4"), np.frombuffer(close.epoch, "<u4")
    return [
        RowError(
            request=int(request[row]),
            epoch=int(epoch[row]),
            status=Status(status),
            message=f"close of epoch {epoch[row]}, which is older than the one open",
        )
        for row, status in enumerate(statuses)
        if status != Status.OK
    ]


def _row_errors(commit: VerifyCommit, tails: native.Tails) -> list[RowError]:
    """A RowError with its message for every row of the commit that was not taken."""
    request, epoch = np.frombuffer(commit.request, "<u4"), np.frombuffer(commit.epoch, "<u4")
    start, token_end = np.frombuffer(commit.start, "<u4"), np.frombuffer(commit.token_end, "<u4")
    tokens, detail = np.frombuffer(commit.tokens, "<i4"), np.frombuffer(tails.detail, "<u4")
    errors = []
    for row in np.flatnonzero(np.frombuffer(tails.status, np.uint8)):
        status = Status(tails.status[row])
        match status:
            case Status.INVALID_TOKEN:
                first = token_end[row - 1] if row > 0 else 0
                message = f"token {detail[row]} of the commit is {tokens[first + detail[row]]}: not in the vocabulary"
            case Status.STALE_EPOCH:
                message = f"epoch {epoch[row]} is older than the one open"
            case _:
                message = f"a commit from {start[row]} on does not join what is known here: send DraftSync"
        errors.append(RowError(request=int(request[row]), epoch=int(epoch[row]), status=status, message=message))
    return errors
