"""Indexing behind the steps, slow and readable: what requests have new, for themselves, in flight, for the history."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from draftd.reference.events import Share
from draftd.reference.figures import Acceptance
from draftd.reference.flight import OVERLAP, PIECE, Flight, Key
from draftd.reference.histories import Histories
from draftd.reference.history import History
from draftd.reference.kept import KeptTexts
from draftd.reference.segment import Segment
from draftd.reference.session import Session
from draftd.reference.texts import IndexJob, Namespace, OwnText, ShareJob

INLINE_TOKENS = 256
"""Tokens of one request that a step indexes itself; what is longer waits for `index_slice`."""


@dataclass
class Entry:
    """A session and what belongs to it."""

    key: Key
    session: Session
    namespace: Namespace
    last_used: float
    own: OwnText = field(default_factory=OwnText)
    acceptance: Acceptance = field(default_factory=Acceptance)
    queued: bool = False
    """Its text waits for `index_slice`."""

    label: str = ""
    """Of what it leaves behind."""

    forgotten: bool = False
    """It leaves nothing behind."""

    flown: int = 0
    """Of its text, what is before this position is in the flight, but for the prompt."""

    @property
    def group(self) -> str:
        """Of the history that it leaves its text to; empty: the namespace's own."""
        options = self.session.options
        return options.group if options.share is Share.GROUP else ""

    @property
    def shares(self) -> bool:
        options = self.session.options
        nowhere = options.share is Share.GROUP and not options.group
        return not (self.forgotten or nowhere or options.share is Share.NOTHING)

    def reads(self, flight: Flight) -> bool:
        """Where it matches no further than the own text, it may say the same once more."""
        if not flight.has_others(self.key):
            return False
        text = self.session.text
        followed = next((level.length for level in flight.index.match(text) if level.distinct), 0)
        return followed > self.own.longest_match(text)


class Indexing(Histories):
    def __init__(self, *, in_flight: bool) -> None:
        super().__init__()
        self._in_flight = in_flight
        self._entries: dict[Key, Entry] = {}
        self._jobs: list[IndexJob | ShareJob] = []
        self._kept = KeptTexts()

    def index_slice(self, max_tokens: int) -> int:
        while max_tokens > 0 and self._jobs:
            worked, done = self._work(self._jobs[0], max_tokens)
            if not done:
                break
            max_tokens -= worked
            del self._jobs[0]
        return len(self._jobs)

    def _work(self, job: IndexJob | ShareJob, most: int) -> tuple[int, bool]:
        """Does up to `most` tokens of the job; returns how many it were and whether that was all."""
        if isinstance(job, ShareJob):
            return job.share_some(most), job.done
        entry = self._entries.get(job.key)
        if entry is None or entry.session.epoch != job.epoch or not entry.queued:
            return 0, True
        worked = self._index_text(entry, most)
        entry.queued = self._has_new_text(entry)
        return worked, not entry.queued

    def _index_inline(self, entry: Entry) -> None:
        if not entry.queued:
            self._index_text(entry, INLINE_TOKENS)
            if self._has_new_text(entry):
                self._queue(entry)

    def _queue(self, entry: Entry) -> None:
        if not entry.queued:
            entry.queued = True
            self._jobs.append(IndexJob(entry.key, entry.session.epoch))

    def _index_text(self, entry: Entry, most: int) -> int:
        """Up to `most` tokens of what a request has new; how many it were."""
        worked = entry.own.index_some(most)
        return worked if entry.own.unindexed else worked + self._feed(entry, most - worked)

    def _has_new_text(self, entry: Entry) -> bool:
        return entry.own.unindexed > 0 or self._due(entry) > 0

    def _due(self, entry: Entry) -> int:
        """New tokens that may go into the flight, if they are worth a piece."""
        fresh = len(entry.session.text) - entry.flown
        return fresh if self._in_flight and entry.shares and fresh >= PIECE else 0

    def _feed(self, entry: Entry, most: int) -> int:
        """Adds up to `most` of them to the flight; how many it were."""
        fresh = min(most, self._due(entry))
        if fresh > 0:
            session = entry.session
            first = 0 if session.options.share is Share.ALL else session.prompt_length
            end = entry.flown + fresh
            piece = session.text[max(entry.flown - OVERLAP, first) : end]
            entry.namespace.history_of(entry.group).flight.add(entry.key, piece)
            entry.flown = end
        return fresh

    def _land(self, entry: Entry) -> None:
        """What is in flight of a request counts no more."""
        entry.flown = entry.session.prompt_length
        history = entry.namespace.find_history(entry.group)
        if history:
            history.flight.leave(entry.key)
            if history.flight.is_mostly_dead:
                self._begin_anew(history)

    def _begin_anew(self, history: History) -> None:
        """Empties a flight and queues the requests that were in it."""
        for key in history.flight.empty():
            entry = self._entries[key]
            entry.flown = entry.session.prompt_length
            self._queue(entry)

    def publish_history(
        self, namespace: int, group: str, segments: Sequence[Segment], *, drop_frozen: bool, now: float
    ) -> None:
        super().publish_history(namespace, group, segments, drop_frozen=drop_frozen, now=now)
        history = self._namespaces[namespace].history_of(group)
        if history.flight.dead_tokens:  # it may have what was left out of the segments
            self._begin_anew(history)

    def forget_requests(self, namespaces: list[int], group: str | None, labels: list[str]) -> set[str]:
        homes = [self._namespaces[number] for number in namespaces]
        closed = [job for job in self._jobs if isinstance(job, ShareJob)]
        requests: list[Entry | ShareJob] = [*self._entries.values(), *closed]
        named = [
            request
            for request in requests
            if request.namespace in homes and request.label in labels and group in (None, request.group)
        ]
        for request in named:
            request.forgotten = True
            history = request.namespace.find_history(request.group)
            if history and isinstance(request, Entry):
                history.flight.leave(request.key)
        for home in homes:
            self._kept.forget(home)
            for name, history in home.histories():
                if group in (None, name) and history.flight.dead_tokens:
                    self._begin_anew(history)
        return {request.label for request in named}
