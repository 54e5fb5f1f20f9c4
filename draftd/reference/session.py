"""The life of one request as a pure state machine: events in, effects out.

`apply(session, event)` answers with the next session and what has to be done about it. Nothing here knows a clock, a
socket or an index; the engine carries the effects out. No session (None) stands for a request that the drafter does
not know: never opened, closed, or expired.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

ANY_VOCABULARY = 2**31 - 1
"""Ids are below this when the vocabulary is not stated."""

NO_TAIL = 2**32 - 1
ALL_NODES = -1
BY_BITMAP = -2


class Status(IntEnum):
    """What became of an event; the numbers of the wire catalogue."""

    OK = 0
    NEED_SYNC = 1
    STALE_EPOCH = 2
    INVALID_TOKEN = 3


class Reason(IntEnum):
    """Why a tail is empty; the numbers of the wire catalogue."""

    NOT_EMPTY = 0
    NO_MATCH = 1
    NOT_ASKED = 2
    BELOW_THRESHOLD = 3
    STOPPED = 4
    LENGTH_LIMIT = 5
    BUDGET_SPENT = 6
    REFUSED = 7


class Share(IntEnum):
    """What of a request enters the shared history when it closes; the numbers of the wire catalogue."""

    OUTPUTS = 0
    GROUP = 1
    ALL = 2
    NOTHING = 3


class State(IntEnum):
    GENERATING = 0
    STOPPED = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What a request says of itself when it opens."""

    vocabulary_size: int = 0
    stop_ids: frozenset[int] = frozenset()
    max_new_tokens: int | None = None
    chain: bool = False
    max_nodes: int = 0
    share: Share = Share.OUTPUTS
    hide_history: bool = False
    group: str = ""
    corpora: frozenset[int] | None = None
    """Corpora it reads; None: all of its namespace."""

    def bad_token(self, tokens: Sequence[int]) -> int | None:
        """Position of the first id outside the vocabulary."""
        limit = self.vocabulary_size or ANY_VOCABULARY
        return next((position for position, token in enumerate(tokens) if not 0 <= token < limit), None)


@dataclass(frozen=True, slots=True)
class Tail:
    """A draft as it was delivered: nodes in tree order, parent -1 is the root at `base` committed tokens."""

    base: int
    tokens: tuple[int, ...]
    parents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """The drafter's mirror of a request."""

    epoch: int
    prompt_length: int
    tokens: tuple[int, ...]
    """Prompt and committed output."""

    options: Options
    tail: Tail | None = None
    """The last draft delivered."""

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
class Open:
    epoch: int
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    options: Options


@dataclass(frozen=True, slots=True)
class Commit:
    """`verified` nodes of the tail of base `tail_base` went through the target and `tokens` came out of it."""

    epoch: int
    start: int
    tokens: tuple[int, ...]
    tail_base: int = NO_TAIL
    verified: int = ALL_NODES
    bitmap: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Close:
    epoch: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """A draft left for the verifier."""

    tail: Tail


@dataclass(frozen=True, slots=True)
class Silence:
    """The verifier was silent for longer than the time to live."""


Event = Open | Commit | Close | Delivered | Silence


@dataclass(frozen=True, slots=True)
class RestartIndex:
    """The request's own index is that of a fresh request with this text."""

    text: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GrowIndex:
    text: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShareText:
    """This text enters the history of the namespace, or that of the group, as one document."""

    group: str | None
    text: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CountOutcome:
    """What a verification said about the tail: nodes at each depth, the first drafted position first."""

    verified: tuple[int, ...]
    accepted: int
    """Length of the accepted path."""


@dataclass(frozen=True, slots=True)
class CountStaleTail:
    """A commit named a tail that was not the last one, or not at its place."""


@dataclass(frozen=True, slots=True)
class CountIgnoredClose:
    """A close of an unknown request or of an older opening."""


Effect = RestartIndex | GrowIndex | ShareText | CountOutcome | CountStaleTail | CountIgnoredClose


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
        case Silence():
            return Transition(None)


def _open(session: Session | None, event: Open) -> Transition:
    if session is not None and session.epoch > event.epoch:
        return Transition(session, Status.STALE_EPOCH)
    tokens = event.prompt + event.output
    bad = event.options.bad_token(tokens)
    if bad is not None:
        return Transition(session, Status.INVALID_TOKEN, bad)
    opened = Session(event.epoch, len(event.prompt), tokens, event.options)
    return Transition(opened, effects=(RestartIndex(opened.text),))


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
    repeated = agreed == event.start + len(event.tokens)
    if not repeated and agreed < session.prompt_length:
        return Transition(session, Status.NEED_SYNC)
    if repeated:
        committed = session
    else:
        committed = replace(session, tokens=session.tokens[:agreed] + event.tokens[agreed - event.start :])
    effects = _index_effects(session, committed) + _outcome_effects(committed, event, repeated)
    return Transition(committed, effects=effects)


def _agreement(tokens: tuple[int, ...], event: Commit) -> int:
    """The committed length up to which the mirror says what the commit says."""
    overlap = tokens[event.start : event.start + len(event.tokens)]
    for offset, token in enumerate(overlap):
        if token != event.tokens[offset]:
            return event.start + offset
    return event.start + len(overlap)


def _index_effects(before: Session, after: Session) -> tuple[Effect, ...]:
    if after.text[: len(before.text)] != before.text:
        return (RestartIndex(after.text),)
    grown = after.text[len(before.text) :]
    return (GrowIndex(grown),) if grown else ()


def _outcome_effects(session: Session, event: Commit, repeated: bool) -> tuple[Effect, ...]:
    if event.tail_base == NO_TAIL:
        return ()
    tail = session.tail
    if tail is None or repeated or not tail.base == event.tail_base == event.start:
        return (CountStaleTail(),)
    verified = _verified_nodes(tail, event)
    counted = session.text[event.start : event.start + len(event.tokens)]
    return (CountOutcome(_nodes_per_depth(tail, verified), _accepted_length(tail, verified, counted)),)


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


def _accepted_length(tail: Tail, verified: list[bool], tokens: tuple[int, ...]) -> int:
    """Length of the path from the root through verified nodes that `tokens` follow."""
    node = -1
    for length, token in enumerate(tokens):
        children = (
            child
            for child, parent in enumerate(tail.parents)
            if parent == node and tail.tokens[child] == token and verified[child]
        )
        child = next(children, None)
        if child is None:
            return length
        node = child
    return len(tokens)


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
            shared = ShareText(None, output)
        case Share.GROUP:
            shared = ShareText(session.options.group, output)
        case Share.ALL:
            shared = ShareText(None, session.text)
        case Share.NOTHING:
            return ()
    return (shared,) if shared.text else ()


def allowed_nodes(session: Session, asked: int, engine_limit: int) -> tuple[int, Reason]:
    """Nodes the next draft may have, and when it may have none, why."""
    if asked == 0:
        return 0, Reason.NOT_ASKED
    if session.state is State.STOPPED:
        return 0, Reason.STOPPED
    limits = [asked, engine_limit]
    if session.options.max_nodes:
        limits.append(session.options.max_nodes)
    if session.options.max_new_tokens is not None:
        limits.append(session.options.max_new_tokens - (len(session.tokens) - session.prompt_length) - 1)
    allowed = min(limits)
    return (allowed, Reason.NOT_EMPTY) if allowed >= 1 else (0, Reason.LENGTH_LIMIT)
