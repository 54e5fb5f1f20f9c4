"""N-gram lookup in the request's own text, on the processor: what engines call prompt lookup.

The longest end of the text, of `longest` down to `shortest` tokens, that occurred in it before, and what followed it
there. With the earliest occurrence the drafts are those of vLLM's n-gram proposer; SGLang takes the newest.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from draftd import native
from draftd.sources.registry import register
from draftd.sources.source import Batch, Lane, Nature, Need, Outcome, Proposals, Shape

Occurrence = Literal["earliest", "newest"]


@register("ngram", own=True)
class Ngram:
    """A chain for each request; O(new tokens) a step, whatever the context's length."""

    nature = Nature(
        needs=frozenset({Need.TOKENS}),
        shape=Shape.CHAIN,
        states_survival=False,
        lane=Lane.NATIVE,
        call_micros=5.0,
        row_micros=2.0,
    )

    def __init__(self, *, shortest: int = 2, longest: int = 5, occurrence: Occurrence = "earliest") -> None:
        """Raises ValueError unless 1 <= shortest <= longest <= 64, and for another word than the two."""
        self._texts = native.NgramTexts(shortest=shortest, longest=longest, newest=is_newest(occurrence))

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        return Proposals(*self._texts.propose(batch.request, batch.start, batch.token_end, batch.tokens, budget))

    def observe(self, outcome: Outcome) -> None:
        self._texts.forget(outcome.ended)

    def close(self) -> None:
        del self._texts

    def memory(self) -> int:
        return self._texts.memory_size()


def propose_once(
    text: NDArray[np.int32],
    most: int,
    *,
    shortest: int = 2,
    longest: int = 5,
    occurrence: Occurrence = "earliest",
) -> NDArray[np.int32]:
    """What the source proposes for a text that is seen once: int32[<= most], in one pass over the text.

    Raises ValueError as the source does."""
    newest = is_newest(occurrence)
    return native.ngram_continuation(text, most, shortest=shortest, longest=longest, newest=newest)


def is_newest(occurrence: Occurrence) -> bool:
    if occurrence not in ("earliest", "newest"):
        raise ValueError(f"occurrence is {occurrence!r}; it can be earliest or newest")
    return occurrence == "newest"
