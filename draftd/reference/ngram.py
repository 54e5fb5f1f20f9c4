"""N-gram lookup as its definition says it: compare the end of the text with every place of it.

`draftd.native.NgramTexts` and `ngram_continuation` give the same drafts without looking at every place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NgramRule:
    """N-grams of `shortest` to `longest` tokens; of one's occurrences the `newest` counts, or else the earliest."""

    shortest: int
    longest: int
    newest: bool


def continuation(text: Sequence[int], rule: NgramRule, most: int) -> list[int]:
    """At most `most` tokens that followed the longest end of the text which occurred in it before."""
    for length in range(rule.longest, rule.shortest - 1, -1):
        places = [
            start for start in range(len(text) - length) if text[start : start + length] == text[len(text) - length :]
        ]
        if places:
            behind = places[-1 if rule.newest else 0] + length
            return list(text[behind : behind + most])
    return []


class NgramTexts:
    """The texts of requests, which grow and are taken back."""

    def __init__(self, rule: NgramRule) -> None:
        self._rule = rule
        self._texts: dict[int, list[int]] = {}

    def propose(self, request: int, start: int, tokens: Iterable[int], most: int) -> list[int]:
        """From `start` on the text is `tokens`, and ends with them.

        Raises ValueError for a start behind the text that is known."""
        known = self._texts.get(request, [])
        if start > len(known):
            raise ValueError(f"{start} is behind the {len(known)} tokens that are known")
        self._texts[request] = [*known[:start], *tokens]
        return continuation(self._texts[request], self._rule, most)

    def forget(self, requests: Iterable[int]) -> None:
        for request in requests:
            self._texts.pop(request, None)
