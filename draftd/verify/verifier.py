"""The verifier: drafts in, one forward pass for each request, a rule's verdict, tokens out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from draftd.client import RequestStates
from draftd.models.attention import check_model
from draftd.verify.cached_text import CachedText
from draftd.verify.drafts import DraftSource, NoDrafts
from draftd.verify.probabilities import probabilities
from draftd.verify.rules import Chance, Dice, Proposal, Rule


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward pass gave one request."""

    request_id: str
    tokens: list[int]  # emitted: first the accepted drafted ones, then the target's own
    accepted: int  # how many of them were drafted
    drafted: int  # nodes that were verified


class Verifier:
    """Generates with a Hugging Face causal language model on the device where it is.

    Requests of a batch share a message to the drafter, but go through the model one after the other: their output does
    not depend on each other, and nothing is padded. It is made to be right and readable, not fast. Raises ValueError
    for a model whose cache or attention it can't work with (see check_model).
    """

    def __init__(
        self,
        model: Any,
        rule: Rule,
        drafts: DraftSource | None = None,
        *,
        temperature: float = 0.0,
        chance: Chance | None = None,
    ) -> None:
        """Without `drafts`, plain decoding; without `chance`, Dice(0). At temperature 0 lossless rules are greedy."""
        check_model(model)
        self._model = model
        self._rule = rule
        self._drafts = drafts or NoDrafts()
        self._temperature = temperature
        self._chance = chance or Dice(0)

    def __repr__(self) -> str:
        model, drafts = type(self._model).__name__, type(self._drafts).__name__
        return f"Verifier({model}, {self._rule}, {drafts}, temperature={self._temperature})"

    def generate(
        self, prompts: Mapping[str, Sequence[int]], max_new_tokens: int, stop_ids: Sequence[int] = ()
    ) -> Iterator[Step]:
        """Runs all requests to their end, at `max_new_tokens` or behind the first stop id, step by step.

        The first pass of a request is over its prompt, and verifies a draft already. Raises ValueError for a prompt
        that is empty or not of the model's vocabulary, a limit below 1, and drafts that the rule can't judge.
        """
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {max_new_tokens}; give at least 1")
        running = {request_id: _Running(CachedText(self._model, prompt)) for request_id, prompt in prompts.items()}
        for request_id, prompt in prompts.items():
            self._drafts.open(request_id, prompt, max_new_tokens, stop_ids)
        try:
            while running:
                states = {request_id: it.states for request_id, it in running.items() if it.states is not None}
                untold = {request_id: it.take_untold() for request_id, it in running.items()}
                proposals = self._drafts.propose(untold, states)
                for request_id, request in list(running.items()):
                    step = self._verify(request_id, request, proposals[request_id], max_new_tokens, stop_ids)
                    if request.length == max_new_tokens or step.tokens[-1] in stop_ids:
                        self._drafts.close(request_id, request.take_untold())
                        del running[request_id]
                    yield step
        finally:  # also where the caller wants no more
            for request_id, request in running.items():
                self._drafts.close(request_id, request.take_untold())

    def _verify(
        self, request_id: str, request: "_Running", proposal: Proposal, max_new_tokens: int, stop_ids: Sequence[int]
    ) -> Step:
        logits = request.text.forward(proposal, with_states=self._drafts.reads_states)
        target = probabilities(logits, self._temperature)
        verdict = self._rule.verify(proposal, target, self._chance)
        emitted = [*proposal.tokens[verdict.path].tolist(), verdict.bonus]
        request.states = request.text.commit(proposal, verdict)
        tokens = _up_to_stop(emitted, stop_ids)[: max_new_tokens - request.length]
        request.untold = tokens
        request.length += len(tokens)
        return Step(request_id, tokens, min(len(verdict.path), len(tokens)), len(proposal.tokens))


@dataclass(slots=True)
class _Running:
    text: CachedText
    untold: list[int] = field(default_factory=list)  # tokens of which the drafter does not know yet
    states: RequestStates | None = None  # the target's, of the last pass
    length: int = 0  # of the output, in tokens

    def take_untold(self) -> list[int]:
        untold, self.untold = self.untold, []
        return untold


def _up_to_stop(tokens: list[int], stop_ids: Sequence[int]) -> list[int]:
    """The tokens up to the first stop id, which is the last one."""
    ends = [place + 1 for place, token in enumerate(tokens) if token in stop_ids]
    return tokens[: ends[0]] if ends else tokens
