"""What vLLM's model runner V2 calls after each step: drafts matched over its own matrix of tokens, on its device.

vLLM keeps that matrix on the device for its method `ngram_gpu`, a row for each request, and has put the step's tokens
into it when it asks. So nothing is copied, and nobody waits.
"""

import inspect
from typing import Any

import torch
from torch import Tensor
from vllm.logger import init_logger
from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

from draftd.adapters.vllm_v2 import MisreadError
from draftd.kernels.texts import DeviceTexts, Rule
from draftd.sources.device_matcher import DeviceMatcher

_ABSTRACT = {"init_cudagraph_manager", "capture", "propose"}  # what a speculator has to have
_READ = ("input_batch", "dummy_run")  # of what propose gets

logger = init_logger("vllm.draftd")  # below vLLM's own, so that its handlers, format and level apply


class DraftdSpeculator(BaseSpeculator):  # type: ignore[misc]  # vLLM is not there where this is checked
    """Chains of `num_speculative_tokens`, for every request of a step, by the rule of docs/ngram-gpu.md.

    Slots without a draft hold the last token of the request's text, which is the one sampled last."""

    supports_mm_inputs = False
    draft_logits = None  # drafts are certain: verification compares tokens

    def __init__(self, vllm_config: Any, device: torch.device, req_states: Any) -> None:
        """Raises MisreadError, for which vLLM's own is to be taken."""
        _check_interface()
        speculation = vllm_config.speculative_config
        self.vllm_config = vllm_config
        self.device = device
        self.speculative_config = speculation
        self.num_speculative_steps: int = speculation.num_speculative_tokens
        try:
            texts = DeviceTexts.over(req_states.all_token_ids.gpu, req_states.total_len.gpu)
        except (AttributeError, ValueError) as error:
            raise MisreadError(f"its request states can't be read: {error}") from error
        rule = Rule(
            speculation.prompt_lookup_min,
            speculation.prompt_lookup_max,
            self.num_speculative_steps,
            pad_with_last=True,
        )
        self._matcher = DeviceMatcher(texts, rule, dtype=torch.int64)
        logger.info("draftd drafts under ngram_gpu, by matches of %d to %d tokens", rule.min_n, rule.max_n)

    def init_cudagraph_manager(self, cudagraph_mode: Any) -> None:
        """The matcher has captured its graph."""

    def capture(self) -> None:
        """As above."""

    def propose(self, input_batch: Any, *_: Any, dummy_run: bool = False, **__: Any) -> Tensor:
        """int64[requests, num_speculative_tokens], on the device, in the order of the batch. vLLM may write to it; the
        next call writes it anew."""
        requests: int = input_batch.num_reqs
        if dummy_run:
            return torch.zeros((requests, self.num_speculative_steps), dtype=torch.int64, device=self.device)
        rows = self._matcher.rows
        with torch.inference_mode():
            rows[:requests] = input_batch.idx_mapping
            rows[requests:] = -1
            return self._matcher.propose().tokens[:requests]


def _check_interface() -> None:
    """Raises MisreadError."""
    abstract: frozenset[str] = getattr(BaseSpeculator, "__abstractmethods__", frozenset())
    if not abstract <= _ABSTRACT:
        raise MisreadError(f"a speculator has to have {sorted(abstract - _ABSTRACT)}, too")
    missing = set(_READ) - inspect.signature(BaseSpeculator.propose).parameters.keys()
    if missing:
        raise MisreadError(f"propose is not given {sorted(missing)}")
