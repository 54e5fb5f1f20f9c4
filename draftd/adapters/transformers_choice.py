"""Which tokens of a pass of transformers' `generate` stand."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessorList, StoppingCriteriaList

from draftd.adapters.ragged_batch import RaggedRow


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """How tokens are chosen: as `generate` would, one after the other, each from the logits behind the one before."""

    logits_processor: LogitsProcessorList
    stopping_criteria: StoppingCriteriaList
    do_sample: bool

    def extend(self, row: RaggedRow, chain: Sequence[int], logits: Tensor) -> int:
        """Append to the row the tokens of one pass, as long as they are those of the chain, and one more; how many.

        `logits`, float[n, vocabulary]: behind the row's text, then behind each token of the chain.
        """
        if not row.running:
            return 0
        start = row.length
        for place, drafted in enumerate([*chain, None]):
            scores = logits[place : place + 1].to(copy=True, dtype=torch.float32)
            scores = self.logits_processor(row.sequence, scores)
            chosen = torch.multinomial(scores.softmax(dim=-1), 1) if self.do_sample else scores.argmax(dim=-1)
            token = int(chosen)
            row.append(token)
            row.running = not bool(self.stopping_criteria(row.sequence, None))
            if token != drafted or not row.running:
                break
        return row.length - start
