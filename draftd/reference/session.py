"""The life of one request as a pure state machine: events in, effects out.

`apply(session, event)` answers with the next session and what has to be done about it. Nothing here knows a clock, a
socket or an index; the engine carries the effects out. No session (None) stands for a request that the drafter does
not know: never opened, closed, or expired.
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import floor

from draftd.reference.events import (
    Close,
    Commit,
    CountIgnoredClose,
    CountOutcome,
    CountStep,
    CutIndex,
    Delivered,
    Effect,
    Event,
    GrowIndex,
    Open,
    Options,
    Reason,
    Share,
    ShareText,
    Status,
    Tail,
)
from draftd.reference.outcome import NO_OUTCOME, outcome_of
from draftd.reference.rest import PaceRules, Rest


class State(Enum):
    GENERATING = auto()
    STOPPED = auto()


@dataclass(frozen=True, slots=True)
class Session:
    """The drafter's mirror of a request."""

    epoch: int
    prompt_length: int
    tokens: tuple[int, ...]
    """Prompt and committed output."""

    options: Options
    tail: Tail | None = None
    """The last draft delivered, unless something was committed since."""

    earlier: Tail | None = None
    """The one before, unless text behind it was taken back."""

    rest: Rest = field(default_factory=Rest)

    @property
    def stop_position(self) -> int | None:
        """Where the first stop id of the output stands."""
        output = range(self.prompt_length, len(self.tokens))
        return next((position for position in output if self.tokens[position] in self.options.stop_ids), None)

    @property
    def state(self) -> State:
        return State.GENERATING if self.stop_position is None else State.STOPPED

    @property
    def text(self) -> tuple[int, ...]:
        """What counts: everything up to the stop id and with it."""
        return self.tokens if self.stop_position is None else self.tokens[: self.stop_position + 1]


@dataclass(frozen=True, slots=True)
class Transition:
    session: Session | None
    status: Status = Status.OK
    detail: int = 0
    """With INVALID_TOKEN: the position of the bad id."""

    accepted: int = NO_OUTCOME
    """Nodes that the text went through, of the tail that a commit used."""

    effects: tuple[Effect, ...] = ()


def apply(session: Session | None, event: Event) -> Transition:
    """The next session and what has to be done."""
    match event:
        case Open():
            return _open(session, event)
        case Commit():
            return _commit(session, event)
        case Close():
            return _close(session, event)
        case Delivered():
            return Transition(session and replace(session, tail=event.tail))


def _open(session: Session | None, event: Open) -> Transition:
    tokens = event.prompt + event.output
    bad = event.options.bad_token(tokens)
    if bad is not None:
        return Transition(session, Status.INVALID_TOKEN, bad)
    if session is not None and session.epoch > event.epoch:
        return Transition(session, Status.STALE_EPOCH)
    opened = Session(event.epoch, len(event.prompt), tokens, event.options)
    return Transition(opened, effects=(GrowIndex(opened.text),))


def _commit(session: Session | None, event: Commit) -> Transition:
    if session is None or event.epoch > session.epoch:
        return Transition(session, Status.NEED_SYNC)
    if event.epoch < session.epoch:
        return Transition(session, Status.STALE_EPOCH)
    bad = session.options.bad_token(event.tokens)
    if bad is not None:
        return Transition(session, Status.INVALID_TOKEN, bad)
    if event.start > len(session.tokens):
        return Transition(session, Status.NEED_SYNC)
    agreed = _agreement(session.tokens, event)
    fresh = event.tokens[agreed - event.start :]
    if not fresh:
        return Transition(session)
    if agreed < session.prompt_length:
        return Transition(session, Status.NEED_SYNC)
    earlier = session.tail if agreed == len(session.tokens) else None
    kept = replace(session, tokens=session.tokens[:agreed], tail=None, earlier=earlier)
    committed = replace(kept, tokens=kept.tokens + fresh)
    outcome = outcome_of(event, session.tail, session.earlier, committed.text)
    for effect in outcome.effects:
        if isinstance(effect, CountOutcome):
            committed = replace(committed, rest=session.rest.outcome(effect.accepted > 0))
    # Without a draft, the first token of the output comes from prefill: nothing was verified.
    used_tail = outcome.accepted != NO_OUTCOME
    verified = kept.state is State.GENERATING and (used_tail or agreed > session.prompt_length)
    counted = (CountStep(),) if verified else ()
    effects = counted + outcome.effects + _index_effects(session, committed, agreed)
    return Transition(committed, accepted=outcome.accepted, effects=effects)


def _agreement(tokens: tuple[int, ...], event: Commit) -> int:
    """The committed length up to which the mirror says what the commit says."""
    overlap = tokens[event.start : event.start + len(event.tokens)]
    for offset, token in enumerate(overlap):
        if token != event.tokens[offset]:
            return event.start + offset
    return event.start + len(overlap)


def _index_effects(before: Session, after: Session, agreed: int) -> tuple[Effect, ...]:
    kept = min(agreed, len(before.text))
    grown = after.text[kept:]
    cut = (CutIndex(kept),) if kept < len(before.text) else ()
    return (*cut, GrowIndex(grown)) if grown else cut


def _close(session: Session | None, event: Close) -> Transition:
    if session is None or event.epoch > session.epoch:
        return Transition(session, effects=(CountIgnoredClose(),))
    if event.epoch < session.epoch:
        return Transition(session, Status.STALE_EPOCH, effects=(CountIgnoredClose(),))
    return Transition(None, effects=_share_effects(session))


def _share_effects(session: Session) -> tuple[Effect, ...]:
    output = session.text[session.prompt_length :]
    match session.options.share:
        case Share.OUTPUTS:
            shared = ShareText("", output)
        case Share.GROUP if session.options.group:
            shared = ShareText(session.options.group, output)
        case Share.ALL:
            shared = ShareText("", session.text)
        case _:
            return ()
    return (shared,) if shared.text else ()


def paced_nodes(session: Session, asked: int, most_nodes: int, rules: PaceRules) -> tuple[Session, int, Reason]:
    """As `allowed_nodes`, in a step that gives each request at most so many: it may rest, and may have more when it has
    run for long."""
    is_long = len(session.tokens) - session.prompt_length > rules.long_run_tokens
    paced = floor(most_nodes * rules.long_run_factor) if is_long else most_nodes
    nodes, reason = allowed_nodes(session, min(asked, paced))
    if nodes == 0:
        return session, nodes, reason
    rest, rests = session.rest.wanted(rules)
    return replace(session, rest=rest), 0 if rests else nodes, Reason.RESTING if rests else reason


def allowed_nodes(session: Session, asked: int) -> tuple[int, Reason]:
    """Nodes the next draft may have, and when it may have none, why."""
    if asked == 0:
        return 0, Reason.NOT_ASKED
    if session.state is State.STOPPED:
        return 0, Reason.STOPPED
    limits = [asked]
    if session.options.max_nodes:
        limits.append(session.options.max_nodes)
    if session.options.max_new_tokens is not None:
        # The last token allowed comes from the verifier itself.
        output_length = len(session.tokens) - session.prompt_length
        limits.append(session.options.max_new_tokens - output_length - 1)
    allowed = min(limits)
    return (allowed, Reason.NOT_EMPTY) if allowed >= 1 else (0, Reason.LENGTH_LIMIT)
