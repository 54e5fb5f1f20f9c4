"""Plain n-gram lookup, the drafter that needs no service: what draftd is compared with.

It does what vLLM's n-gram proposer does: find the longest suffix of the request's own text, of 5 down to 2 tokens,
that occurred before, and propose what followed its earliest occurrence. vLLM scans the text in every step; this one
keeps the earliest occurrence of each n-gram in a table, which gives the same drafts.
"""

import time
from array import array
from collections.abc import Mapping, Sequence

from draftd.replay.runner import PlainDraft, TimedDrafts
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

    def __init__(self, drafter: "NgramDrafter", lookup: NgramLookup) -> None:
        self._drafter = drafter
        self.lookup = lookup

    def finish(self, tokens: Sequence[int]) -> None:
        self.lookup.extend(tokens)
        self._drafter.last_ended = self.lookup


class NgramDrafter:
    """Opens requests for n-gram lookup. A turn that continues the text of the one that ended last takes its table."""

    def __init__(self) -> None:
        self.last_ended = NgramLookup([])

    def open(self, recorded: RecordedRequest) -> NgramRequest:
        prompt = recorded.prompt.tolist()
        lookup, self.last_ended = self.last_ended, NgramLookup([])
        if lookup.extends_to(prompt):
            lookup.extend(prompt[len(lookup) :])
        else:
            lookup = NgramLookup(prompt)
        return NgramRequest(self, lookup)

    def step(self, commits: Mapping[NgramRequest, Sequence[int]], nodes: int, min_survival: float) -> TimedDrafts:
        """Lookup has no probabilities: `min_survival` changes nothing."""
        del min_survival
        started = time.perf_counter_ns()
        drafts = []
        for request, tokens in commits.items():
            request.lookup.extend(tokens)
            drafts.append(request.lookup.draft(nodes))
        micros = (time.perf_counter_ns() - started) / 1000
        return TimedDrafts([_chain(draft) for draft in drafts], micros, round_trip_micros=None)


def _chain(tokens: Sequence[int]) -> PlainDraft:
    return PlainDraft(tokens, range(-1, len(tokens) - 1), None, array("i", tokens).tobytes())
