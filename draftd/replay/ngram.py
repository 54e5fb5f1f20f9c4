"""Plain n-gram lookup, the drafter that needs no service: what draftd is compared with.

It does what vLLM's n-gram proposer does: find the longest suffix of the request's own text, of 5 down to 2 tokens,
that occurred before, and propose what followed its earliest occurrence. vLLM scans the text in every step; this one
keeps the earliest occurrence of each n-gram in a table, which gives the same drafts.
"""

import time
from array import array
from collections.abc import Sequence

from draftd.replay.runner import TimedDraft
from draftd.replay.traces import RecordedRequest

SHORTEST = 2
LONGEST = 5


class NgramLookup:
    """The lookup over one text that only grows."""

    def __init__(self, text: Sequence[int]) -> None:
        self._text: list[int] = []
        self._earliest: dict[tuple[int, ...], int] = {}  # n-gram -> position after its first occurrence
        self._entered = 0  # n-grams that end at or before this position are in the table
        self.extend(text)

    def extends_to(self, text: list[int]) -> bool:
        """True if `text` starts with the whole text of this lookup."""
        return text[: len(self._text)] == self._text

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends tokens. The n-grams at the very end stay out of the table: they must not match themselves."""
        self._text.extend(tokens)
        text = self._text
        for end in range(self._entered + 1, len(text)):
            for length in range(SHORTEST, min(LONGEST, end) + 1):
                self._earliest.setdefault(tuple(text[end - length : end]), end)
        self._entered = max(self._entered, len(text) - 1)

    def draft(self, budget: int) -> list[int]:
        """At most `budget` tokens, a chain; empty without a match."""
        text = self._text
        for length in range(min(LONGEST, len(text)), SHORTEST - 1, -1):
            position = self._earliest.get(tuple(text[-length:]))
            if position is not None:
                return text[position : position + budget]
        return []

    def __len__(self) -> int:
        return len(self._text)


class NgramRequest:
    """A request under way, drafted for by lookup in its own text."""

    def __init__(self, lookup: NgramLookup) -> None:
        self._lookup = lookup

    def step(self, tokens: Sequence[int], nodes: int, min_survival: float) -> TimedDraft:
        """Lookup has no probabilities: `min_survival` changes nothing."""
        del min_survival
        started = time.perf_counter_ns()
        self._lookup.extend(tokens)
        draft = self._lookup.draft(nodes)
        micros = (time.perf_counter_ns() - started) / 1000
        content = array("i", draft).tobytes()
        return TimedDraft(draft, range(-1, len(draft) - 1), content, micros, round_trip_micros=None)

    def finish(self, tokens: Sequence[int]) -> None:
        self._lookup.extend(tokens)


class NgramDrafter:
    """Opens requests for n-gram lookup. A turn that continues the text of the turn before takes over its table."""

    def __init__(self) -> None:
        self._last = NgramLookup([])

    def open(self, recorded: RecordedRequest) -> NgramRequest:
        prompt = recorded.prompt.tolist()
        if self._last.extends_to(prompt):
            self._last.extend(prompt[len(self._last) :])
        else:
            self._last = NgramLookup(prompt)
        return NgramRequest(self._last)
