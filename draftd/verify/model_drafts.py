"""Drafts of a model in the same process, with the distributions that they were drawn from."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count, pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from draftd.client import RequestStates
from draftd.sources import Batch, Outcome
from draftd.sources.draft_model import DraftModel
from draftd.verify.rules import Proposal


class ModelDrafts:
    """Drafts of at most `nodes` nodes. What the source draws is for Rejection and Block, other drafts for the rules
    without probabilities. `width`: ids of the target, as many as its logits have."""

    reads_states = False

    def __init__(self, source: DraftModel, nodes: int, width: int) -> None:
        self._source = source
        self._nodes = nodes
        self._width = width
        self._count = count()
        self._numbers: dict[str, int] = {}  # of the requests, at the source
        self._lengths: dict[str, int] = {}  # tokens that the source was shown
        self._prompts: dict[str, Sequence[int]] = {}  # that it was not shown yet

    def open(
        self,
        request_id: str,
        prompt: Sequence[int],
        max_new_tokens: int,  # noqa: ARG002  (what is drafted beyond the end is not verified)
        stop_ids: Sequence[int],  # noqa: ARG002
    ) -> None:
        self._numbers[request_id] = next(self._count)
        self._lengths[request_id] = 0
        self._prompts[request_id] = prompt

    def propose(
        self,
        emitted: Mapping[str, Sequence[int]],
        states: Mapping[str, RequestStates],  # noqa: ARG002  (it reads none)
    ) -> Mapping[str, Proposal]:
        fresh = [[*self._prompts.pop(request_id, ()), *tokens] for request_id, tokens in emitted.items()]
        batch = Batch(
            request=np.array([self._numbers[request_id] for request_id in emitted], np.uint64),
            start=np.array([self._lengths[request_id] for request_id in emitted], np.uint32),
            token_end=np.cumsum([len(tokens) for tokens in fresh], dtype=np.uint32),
            tokens=np.array(list(chain.from_iterable(fresh)), np.int32),
        )
        for request_id, tokens in zip(emitted, fresh, strict=True):
            self._lengths[request_id] += len(tokens)
        return dict(zip(emitted, self._proposals(batch), strict=True))

    def close(self, request_id: str, emitted: Sequence[int]) -> None:  # noqa: ARG002  (nothing is learned from it)
        self._prompts.pop(request_id, None)
        del self._lengths[request_id]
        none = np.empty(0, np.uint16)
        self._source.observe(
            Outcome(np.empty(0, np.uint64), none, none, np.array([self._numbers.pop(request_id)], np.uint64))
        )

    def _proposals(self, batch: Batch) -> list[Proposal]:
        budget = np.full(len(batch.request), self._nodes, np.uint32)
        drawn_from: Iterable[NDArray[np.float64] | None]
        if self._source.draws:
            drafts, drawn_from = self._source.propose_drawn(batch, budget, self._width)
        else:
            drafts, drawn_from = self._source.propose(batch, budget), repeat(None, len(budget))
        assert drafts.parents is not None  # it gives trees
        rows = pairwise([0, *drafts.node_end.tolist()])
        return [
            Proposal(drafts.tokens[first:end], drafts.parents[first:end], probabilities)
            for (first, end), probabilities in zip(rows, drawn_from, strict=True)
        ]
