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

from draftd import native
from draftd.config import DraftingSettings, EngineSettings, PacingSettings, SourceSettings
from draftd.engine.asked_sources import AskedSources
from draftd.engine.checked_priors import checked_priors
from draftd.engine.explain import Explainer
from draftd.engine.fusion import Fusion
from draftd.engine.hidden_states import hidden_states
from draftd.engine.histories import Histories
from draftd.engine.namespaces import Namespaces
from draftd.engine.opening import Opener, namespace_of
from draftd.engine.paces import PacerMaker, StepPace
from draftd.engine.refusals import Rejected, check_batch, parse, step_columns
from draftd.engine.row_errors import close_errors, row_errors
from draftd.engine.statistics import Counters, Statistics, collect
from draftd.engine.tapes import fill_tape
from draftd.engine.verifiers import Verifier, Verifiers
from draftd.observe.cpus import cpu_count
from draftd.wire import (
    MOST_TAPE_WINDOWS,
    PROTOCOL,
    DraftTail,
    Error,
    Frame,
    Hello,
    HelloReply,
    Namespace,
    Pacing,
    Reason,
    RowError,
    Status,
    StepBatch,
    TailKind,
    VerifyCommit,
)

MOST_THREADS = 8  # of one step by default: to wake a thread takes as long as to draft for a request or two

_log = logging.getLogger("draftd.engine")


@dataclass(frozen=True, slots=True)
class Answer:
    """Send `reply` once `Engine.indexed(ticket)`; ticket 0 is at once."""

    reply: bytes
    ticket: int = 0


class Engine(Histories):
    """Answers the frames of all verifiers. Thread-safe; every transport of a server shares one."""

    def __init__(
        self,
        settings: EngineSettings,
        drafting: DraftingSettings = DraftingSettings(),  # noqa: B008  (frozen)
        pacing: PacingSettings = PacingSettings(),  # noqa: B008
        *,
        in_flight: bool = True,
        sources: Sequence[SourceSettings] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ValueError, which names what it is about, for priors, a schedule or a draft source that can't be
        used."""
        core = native.Engine(
            session_ttl=settings.session_ttl,
            memory_limit=settings.memory_limit,
            history_limit=settings.history_limit,
            max_nodes=settings.max_nodes,
            in_flight=in_flight,
            learning=drafting.learning,
            priors=checked_priors(drafting.priors),
            rest_after=pacing.rest_after,
            rest_steps=pacing.rest_steps,
            long_run_tokens=pacing.long_run_tokens,
            long_run_factor=pacing.long_run_factor,
            threads=settings.threads or min(cpu_count(), MOST_THREADS),
        )
        super().__init__(core, Namespaces(core, settings.max_corpora), clock)
        self.incarnation = secrets.randbits(64)
        self._settings = settings
        self._wall_clock = wall_clock
        self.explainer = Explainer(self._core, self._namespaces, drafting)
        self._opener = Opener(self._core, self._namespaces, settings.memory_limit, drafting)
        self._counters = Counters()
        self._verifiers = Verifiers(PacerMaker(pacing).make)
        self._fusion = Fusion(core, AskedSources(sources))

    def handle(self, frame: bytes, *, shed: bool = False) -> Answer:
        """Answers one frame. Never raises for what a peer sent: that becomes an Error frame, and is counted.

        `shed`: the drafter is behind; commits are taken, drafts are left out.
        """
        message = Frame()
        try:
            parse(frame, message, self._settings.max_frame_bytes)
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

    def _error(self, message: Frame, status: Status, why: str) -> Answer:
        self._counters.frame_refused(status)
        error = Error(status=status, message=why, step=message.step.step)
        return Answer(Frame(error=error).SerializeToString())

    def _hello(self, hello: Hello) -> Answer:
        if hello.protocol != PROTOCOL:
            raise Rejected(Status.UNSUPPORTED_VERSION, f"protocol {hello.protocol}; this drafter speaks {PROTOCOL}")
        try:
            self._verifiers.greet(hello, self._clock())
        except ValueError as error:
            raise Rejected(Status.INVALID_ARGUMENT, f"hello: {error}") from None
        _log.debug("verifier %r says hello, incarnation %016x", hello.verifier, hello.incarnation)
        tokenizer = self._namespaces.tokenizer_of(hello.tenant, hello.model)
        reply = HelloReply(
            protocol=PROTOCOL,
            version=version("draftd"),
            incarnation=self.incarnation,
            kinds=list(TailKind),
            max_nodes=self._settings.max_nodes,
            max_rows=self._settings.max_rows,
            max_frame_bytes=self._settings.max_frame_bytes,
            tokenizer=tokenizer.fingerprint if tokenizer else "",
            vocabulary_size=tokenizer.vocabulary_size if tokenizer else 0,
            wants_hidden_states=self._fusion.wants_states(hello.tenant, hello.model),
        )
        return Answer(Frame(hello_reply=reply).SerializeToString())

    def _step(self, batch: StepBatch, shed: bool) -> Answer:
        now = self._clock()
        sender = batch.verifier
        verifier = self._sender(batch, now)
        check_batch(batch, self._settings.max_rows)
        commit, wanted = batch.commit, batch.commit.max_nodes  # once: each look makes an object, or copies
        columns = step_columns(commit, wanted)  # first: a pace remembers what the step states
        hidden = hidden_states(commit)
        pace = self._pace(verifier, batch, shed)
        if pace.max_nodes is not None:
            columns = step_columns(commit, pace.max_nodes)
        errors: list[RowError] = []

        if batch.close.request:
            closed_at = int(self._wall_clock())
            statuses = self._core.close(sender, batch.close.request, batch.close.epoch, now, closed_at)
            self._fusion.closed(sender, batch.close)
            errors += close_errors(batch.close, statuses)
        for sync in batch.sync:
            if error := self._opener.open(sender, sync, now, takes_trees=verifier.takes_trees):
                self._counters.sync_refused(Status(error.status))
                errors.append(error)
            else:
                self._fusion.opened(sender, sync.request, sync.epoch, namespace_of(sync), now)
        began = time.perf_counter()
        tails = self._core.step(sender, now, columns, batch.budget, batch.min_survival, pace.cost, pace.most_nodes)
        seconds = time.perf_counter() - began
        tails, more_seconds = self._fusion.improved(batch, hidden, columns, tails, pace.cost, now)
        seconds += more_seconds

        if verifier.pacer is not None:
            verifier.pacer.learn(batch, tails, shed=shed)
        if wanted.strip(b"\0") and not shed:  # drafts were asked for
            self._counters.drafted(pace.pacing, len(tails.source), seconds)
        if tails.status.strip(b"\0"):  # any(), but thirty times faster
            errors += row_errors(commit, tails)
        # Filled in place: a message handed to another's constructor is copied.
        frame = Frame()
        reply = frame.reply
        reply.drafter = self.incarnation
        reply.step = batch.step
        reply.core_micros = round(seconds * 1e6)
        reply.errors.extend(errors)
        self._fill(reply.tail, commit, tails, pace)
        if batch.tape_windows and verifier.takes_tapes:
            windows = 0 if shed else min(batch.tape_windows, MOST_TAPE_WINDOWS)
            whose = (sender, commit.request, commit.epoch)
            fill_tape(reply.tape, commit, self._core.tapes(*whose, windows, batch.tape_news))
        return Answer(frame.SerializeToString(), self._core.ticket() if batch.wait else 0)

    def _sender(self, batch: StepBatch, now: float) -> Verifier:
        """Raises Rejected for one that never said hello, or was silent for too long since."""
        verifier = self._verifiers.heard(batch.verifier, now)
        if verifier is None:
            raise Rejected(Status.NEED_HELLO, "unknown verifier: say hello, then sync the requests anew")
        return verifier

    def _pace(self, verifier: Verifier, batch: StepBatch, shed: bool) -> StepPace:
        """Raises Rejected for a cost table or widths that are none."""
        if shed:
            return StepPace(Pacing.AS_ASKED, bytes(len(batch.commit.max_nodes)), why_none=Reason.SHED)
        if verifier.pacer is None:
            return StepPace(Pacing.AS_ASKED)
        try:
            return verifier.pacer.pace(batch)
        except ValueError as error:
            raise Rejected(Status.INVALID_ARGUMENT, str(error)) from None

    def _fill(self, tail: DraftTail, commit: VerifyCommit, tails: native.Tails, pace: StepPace) -> None:
        tail.request = commit.request
        tail.epoch = commit.epoch
        tail.base = tails.base
        tail.status = tails.status
        tail.reason = tails.reason if pace.why_none is None else self._reasons(commit, tails, pace.why_none)
        tail.kind = tails.kind
        tail.node_end = tails.node_end
        tail.tokens = tails.tokens
        tail.parents = tails.parents
        tail.survival = tails.survival
        tail.source = tails.source

    def _reasons(self, commit: VerifyCommit, tails: native.Tails, why: Reason) -> bytes:
        """The core was asked for commits only; rows that wanted a draft are told why there is none."""
        reasons = np.frombuffer(tails.reason, np.uint8).copy()
        left_out = (np.frombuffer(commit.max_nodes, "<u2") > 0) & (reasons == Reason.NOT_ASKED)
        reasons[left_out] = why
        self._counters.gave_none(int(left_out.sum()), why)
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
        oldest = now - self._settings.session_ttl
        self._verifiers.forget_silent(oldest)
        self._fusion.expire(oldest)
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
        return collect(self._core, self._counters, self._verifiers.beliefs())

    def close(self) -> None:
        """Stops indexing. What is sent afterwards is answered, but waits for nothing that is not indexed yet."""
        self._core.stop_indexing()
        self._fusion.close()
