"""What can happen to a request, and what may have to be done about it: the vocabulary of `session`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from draftd.reference.model import Candidate, Lesson
from draftd.reference.policy import Policy

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
    LIMIT_EXCEEDED = 7


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
    NOT_WORTH_IT = 9
    RESTING = 10


class TailKind(IntEnum):
    """The numbers of the wire catalogue."""

    TREE = 0
    CHAIN = 1
    TAPE = 2


class Source(IntEnum):
    """Where the best evidence for a node came from; the numbers of the wire catalogue."""

    OWN_TEXT = 0
    SHARED_HISTORY = 1
    GROUP_HISTORY = 2
    CORPUS = 3
    FILL = 4
    DRAFT_SOURCE = 5


class Share(IntEnum):
    """What of a request enters the shared history when it closes; the numbers of the wire catalogue."""

    OUTPUTS = 0
    GROUP = 1
    ALL = 2
    NOTHING = 3


@dataclass(frozen=True, slots=True)
class Options:
    """What a request says of itself when it opens."""

    vocabulary: int = ANY_VOCABULARY
    stop_ids: frozenset[int] = frozenset()
    max_new_tokens: int | None = None
    chain: bool = False
    max_nodes: int = 0
    policy: Policy = field(default_factory=Policy)
    share: Share = Share.OUTPUTS
    hide_history: bool = False
    group: str = ""
    corpora: frozenset[int] | None = None
    """Numbers of the corpora it reads; None: all of its namespace."""

    def bad_token(self, tokens: Sequence[int]) -> int | None:
        """Position of the first id outside the vocabulary."""
        bad = (position for position, token in enumerate(tokens) if not 0 <= token < self.vocabulary)
        return next(bad, None)


@dataclass(frozen=True, slots=True)
class Tail:
    """A draft as it was delivered: nodes in tree order, parent -1 is the root at `base` committed tokens."""

    base: int
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    lesson: Lesson = field(default_factory=Lesson)


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


Event = Open | Commit | Close | Delivered


@dataclass(frozen=True, slots=True)
class CutIndex:
    """Of the request's own text the first `length` tokens remain."""

    length: int


@dataclass(frozen=True, slots=True)
class GrowIndex:
    """The request's own text goes on with this."""

    text: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShareText:
    """This text enters the history of the namespace, or, if one is named, that of the group, as one document."""

    group: str
    text: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CountStep:
    """A commit brought new tokens, not the first of the output."""


@dataclass(frozen=True, slots=True)
class CountOutcome:
    """What became of the nodes of a tail that went through the target."""

    verified: tuple[int, ...]
    """How many at each depth, the first that was verified first."""

    accepted: int
    """Length of the accepted path."""


@dataclass(frozen=True, slots=True)
class Teach:
    """What the namespace's model may learn from a commit."""

    followed: tuple[tuple[Sequence[Candidate], int], ...]
    """The candidates of the last tail's root and of each node that the text went through, and the token that
    followed."""

    fates: tuple[tuple[float, bool], ...]
    """Of each verified node its survival before it was corrected, given what was committed when it was verified, and
    whether it was accepted."""


@dataclass(frozen=True, slots=True)
class CountStaleTail:
    """New tokens came with a tail that was neither the last one nor the one before, or not at the last one's place."""


@dataclass(frozen=True, slots=True)
class CountIgnoredClose:
    """A close of an unknown request or of an older opening."""


Effect = CutIndex | GrowIndex | ShareText | CountStep | CountOutcome | Teach | CountStaleTail | CountIgnoredClose
