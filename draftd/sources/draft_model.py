"""A causal language model as drafter, any of transformers' with full attention: chains, or trees of likely tokens.

Needs the `models` extra, and is imported only when it is asked for. What works with the model is in draftd.models; this
is whose texts these are, in whose tokens.
"""

import math
from array import array
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from draftd.models.drafting import Ask, Style
from draftd.models.growing_tree import Draft
from draftd.models.shared_model import ModelOptions, SharedModel
from draftd.models.slots import KeptText
from draftd.models.vocabulary import Vocabulary
from draftd.sources.source import Batch, Lane, Nature, Need, Outcome, Proposals, Shape


class DraftModel:
    """Instances of the same model and the same memory share both, and their requests are drafted for together."""

    nature = Nature(
        needs=frozenset({Need.TOKENS}),
        shape=Shape.TREE,
        states_survival=True,
        lane=Lane.THREAD,  # the model has a thread of its own, on any device: this one only waits for it
        call_micros=2_000.0,  # of a small model on a GPU; one that takes longer is late, and then left alone
        row_micros=20.0,
    )

    def __init__(
        self,
        *,
        model: str,
        target_tokenizer: str | None = None,
        longest: int = 4,
        children: int = 1,
        temperature: float = 0.0,
        seed: int = 0,
        device: str = "cpu",
        dtype: str = "auto",
        kv_tokens: int = 16_384,
        catch_up: int = 64,
    ) -> None:
        """`model`, `target_tokenizer`: a directory, or a name of the Hugging Face hub; without the second, the target's
        tokens are the drafter's. `longest`: tokens of a chain, levels of a tree. `children`: of a node, and nodes of a
        level that have any; 1 for chains. `temperature`: 0 for the likeliest tokens; above, chains are drawn.
        `device`, `dtype`: as torch names them; "auto" is as the files have it. `kv_tokens`: of all requests together.
        `catch_up`: tokens that a request may be behind and is still drafted for.

        Raises ValueError for options that can't be meant, a model that can't draft here and a vocabulary that shares
        too little, and what transformers raises for a model that can't be loaded."""
        _check(longest=longest, children=children, temperature=temperature, kv_tokens=kv_tokens, catch_up=catch_up)
        self._shared = SharedModel.borrow(ModelOptions(model, device, dtype, kv_tokens, catch_up, seed))
        try:
            self._style = Style(longest, children, temperature, self._shared.vocabulary(target_tokenizer))
        except BaseException:
            self._shared.release()
            raise
        self._requests: dict[int, _Request] = {}
        self._text_bytes = 0

    @property
    def draws(self) -> bool:
        """Are drafts drawn, so that propose_drawn can be asked?"""
        return self._style.temperature > 0.0

    def propose(self, batch: Batch, budget: NDArray[np.uint32]) -> Proposals:
        return _proposals(self._drafts(batch, budget, self._style))

    def propose_drawn(
        self, batch: Batch, budget: NDArray[np.uint32], width: int
    ) -> tuple[Proposals, list[NDArray[np.float64]]]:
        """The same, and for each row, of n nodes, float64[n + 1, width]: the distribution that the child of each place
        was drawn from, the text being place 0 and node i place i + 1; 0 where no child was drawn. For the ratio test
        (Leviathan et al., arXiv 2211.17192); `width`: ids of the target.

        Raises ValueError where drafts are not drawn, and for a width that lacks a token of both."""
        if not self.draws:
            raise ValueError("temperature is 0: drafts are not drawn, and have no probabilities to be verified with")
        columns = self._style.vocabulary.target
        if width <= columns.max():
            raise ValueError(f"width is {width}, and the drafter drafts the id {columns.max()}")
        drafts = self._drafts(batch, budget, replace(self._style, with_probabilities=True))
        return _proposals(drafts), [_widened(draft, columns, width) for draft in drafts]

    def observe(self, outcome: Outcome) -> None:
        """What was accepted comes with the text."""
        known = (self._requests.pop(request, None) for request in outcome.ended.tolist())
        ended = [request for request in known if request is not None]
        self._text_bytes -= sum(len(request.target) * request.target.itemsize for request in ended)
        self._shared.forget([request.kept for request in ended])

    def close(self) -> None:
        self._shared.forget([request.kept for request in self._requests.values()])
        self._requests.clear()
        self._shared.release()

    def memory(self) -> int:
        """Of weights, keys and values, which are divided by the instances that share them, and of texts."""
        return self._shared.memory() + self._text_bytes

    def _drafts(self, batch: Batch, budget: NDArray[np.uint32], style: Style) -> list[Draft]:
        asks = []
        rows = zip(batch.request.tolist(), batch.start.tolist(), _parts(batch), budget.tolist(), strict=True)
        for request, start, tokens, most in rows:
            known = self._requests.setdefault(request, _Request())
            before = len(known.target)
            asks.append(known.ask(start, tokens, most, style.vocabulary))
            self._text_bytes += (len(known.target) - before) * known.target.itemsize
        return self._shared.draft(style, asks)


@dataclass(slots=True)
class _Request:
    """A request's text, in the target's tokens and in the drafter's."""

    target: "array[int]" = field(default_factory=lambda: array("i"))  # grows without a copy of what is there
    length: int = 0  # of the drafter's
    kept: KeptText = field(default_factory=KeptText)

    def ask(self, start: int, tokens: NDArray[np.int32], most: int, vocabulary: Vocabulary) -> Ask:
        """From `start` on the text is `tokens`, in those of the target, and ends with them."""
        if start < len(self.target):  # taken back: a token may be any number of the drafter's, so all is said again
            start, tokens = 0, np.concatenate((np.array(self.target[:start], np.int32), tokens))
        first = self.length if start else 0
        del self.target[start:]
        self.target.frombytes(tokens.tobytes())
        fresh = vocabulary.to_drafter(tokens)
        self.length = first + len(fresh)
        return Ask(self.kept, first, fresh, most)


def _parts(batch: Batch) -> list[NDArray[np.int32]]:
    return [batch.tokens[first:end] for first, end in pairwise([0, *batch.token_end.tolist()])]


def _proposals(drafts: list[Draft]) -> Proposals:
    nothing = Draft(np.empty(0, np.int32), np.empty(0, np.int16), np.empty(0, np.float32), None)
    return Proposals(
        node_end=np.cumsum([len(draft.tokens) for draft in drafts], dtype=np.uint32),
        tokens=np.concatenate([draft.tokens for draft in (nothing, *drafts)]),
        parents=np.concatenate([draft.parents for draft in (nothing, *drafts)]),
        survival=np.concatenate([draft.survival for draft in (nothing, *drafts)]),
    )


def _widened(draft: Draft, columns: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    assert draft.probabilities is not None  # the style says so
    wide = np.zeros((len(draft.probabilities), width))
    wide[:, columns] = draft.probabilities
    return wide


def _check(*, longest: int, children: int, temperature: float, kv_tokens: int, catch_up: int) -> None:
    for name, value in (("longest", longest), ("children", children), ("catch_up", catch_up)):
        if value < 1:
            raise ValueError(f"{name} is {value}; give at least 1")
    if not 0.0 <= temperature < math.inf:
        raise ValueError(f"temperature is {temperature}; give 0 for the likeliest tokens, or more")
    if temperature and children > 1:
        raise ValueError("drawn drafts are chains: give a temperature of 0, or 1 as children")
    if kv_tokens < catch_up + longest * children:
        raise ValueError(f"kv_tokens is {kv_tokens}; one request alone takes {catch_up + longest * children}")
