"""The life of one request as a pure state machine: events in, effects out.

`apply(session, event)` answers with the next session and what has to be done about it. Nothing here knows a clock, a
socket or an index; the engine carries the effects out. No session (None) stands for a request that the drafter does
not know: never opened, closed, or expired.
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import floor

from draftd.reference.events import (
    ALL_NODES,
    BY_BITMAP,
    NO_TAIL,
    Close,
    Commit,
    CountIgnoredClose,
    CountOutcome,
    CountStaleTail,
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
    Teach,
)
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
    kept = replace(session, tokens=session.tokens[:agreed], tail=None)
    committed = replace(kept, tokens=kept.tokens + fresh)
    outcome = _outcome_effects(session, committed, event)
    for effect in outcome:
        if isinstance(effect, CountOutcome) and any(effect.verified):
            committed = replace(committed, rest=session.rest.outcome(effect.accepted > 0))
    used_tail = any(isinstance(effect, CountOutcome) for effect in outcome)
    # Without a draft, the first token of the output comes from prefill: nothing was verified.
    verified = kept.state is State.GENERATING and (used_tail or agreed > session.prompt_length)
    counted = (CountStep(),) if verified else ()
    effects = counted + outcome + _index_effects(session, committed, agreed)
    return Transition(committed, effects=effects)


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


def _outcome_effects(before: Session, after: Session, event: Commit) -> tuple[Effect, ...]:
    tail = before.tail
    if tail is None or not tail.tokens or not tail.base == event.tail_base == event.start:
        stale = (CountStaleTail(),) if event.tail_base != NO_TAIL else ()
        if tail is None or tail.base != event.start or not tail.lesson.candidates:
            return stale
        # What comes where the last draft was made tells of it, also when it was empty, or not the one that was used.
        tokens = after.text[tail.base :]
        path = _accepted_path(tail, [True] * len(tail.tokens), tokens)
        return (*stale, _teaching(tail, [False] * len(tail.tokens), path, tokens))
    verified = _verified_nodes(tail, event)
    tokens = after.text[tail.base :]
    path = _accepted_path(tail, verified, tokens)
    outcome = CountOutcome(_nodes_per_depth(tail, verified), len(path))
    return (outcome, _teaching(tail, verified, path, tokens)) if tail.lesson.candidates else (outcome,)


def _verified_nodes(tail: Tail, event: Commit) -> list[bool]:
    nodes = len(tail.tokens)
    if event.verified == ALL_NODES:
        return [True] * nodes
    if event.verified == BY_BITMAP:
        return list(event.bitmap[:nodes]) + [False] * (nodes - len(event.bitmap))
    return [node < event.verified for node in range(nodes)]


def _nodes_per_depth(tail: Tail, verified: list[bool]) -> tuple[int, ...]:
    depths: list[int] = []
    counts: list[int] = []
    for node, parent in enumerate(tail.parents):
        depth = 0 if parent < 0 else depths[parent] + 1
        depths.append(depth)
        counts.extend([0] * (depth + 1 - len(counts)))
        counts[depth] += verified[node]
    return tuple(counts)


def _accepted_path(tail: Tail, verified: list[bool], tokens: tuple[int, ...]) -> list[int]:
    """The path from the root through verified nodes that `tokens` follow."""
    path: list[int] = []
    for token in tokens:
        children = (
            child
            for child, parent in enumerate(tail.parents)
            if parent == (path[-1] if path else -1) and tail.tokens[child] == token and verified[child]
        )
        child = next(children, None)
        if child is None:
            break
        path.append(child)
    return path


def _teaching(tail: Tail, verified: list[bool], path: list[int], tokens: tuple[int, ...]) -> Teach:
    places = [tail.lesson.candidates[node + 1] for node in (-1, *path)]
    fates = [(raw, node in path) for node, raw in enumerate(tail.lesson.raw) if verified[node]]
    return Teach(tuple(zip(places, tokens, strict=False)), tuple(fates))


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
