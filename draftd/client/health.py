"""What a client can say about itself."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Since the client was made."""

    steps: int = 0  # answered in time
    late: int = 0  # not answered within the deadline
    unreachable: int = 0  # no connection, or it broke
    refused: int = 0  # the drafter refused the whole step
    off: int = 0  # not asked, because the circuit breaker was open
    late_replies: int = 0  # came after their deadline: statuses applied, tails dropped
    unasked_tails: int = 0
    stale_tails: int = 0  # came too late for an engine that does not wait: of an earlier life, epoch or text
    stale_windows: int = 0  # the same of windows of tapes
    dropped_windows: int = 0  # of text that was taken away
    dropped_tails: int = 0  # that the committed text left, so that nothing of them continued it
    unknown_tails: int = 0  # tails of a kind this client does not know, given as empty drafts
    unknown_frames: int = 0  # frames of an unknown kind, broken ones, answers to nothing
    row_errors: int = 0  # requests whose opening, sync, commit or close was not taken
    hellos: int = 0
    syncs: int = 0  # openings and re-syncs


@dataclass(frozen=True, slots=True)
class Health:
    """`state`: "connecting" (nothing heard yet), "serving", "failing" (the last call failed), "off" (the
    circuit breaker is open) or "closed"."""

    state: str
    last_error: str  # of any kind; empty: none so far
    last_refusal: str  # of a request or a whole step; empty: none so far
    drafter_version: str  # empty: no drafter known
    drafter_incarnation: int | None
    tokenizer: str | None  # fingerprint that this client states; None: none
    vocabulary_size: int  # that this client states; 0: none
    drafter_tokenizer: (
        str | None
    )  # configured at the drafter for this client's tenant and model; None: none, or unknown
    drafter_vocabulary_size: int  # of that tokenizer; 0: none, or unknown
    consecutive_failures: int
    counters: Counters  # a copy: it does not move
