"""What vLLM's model runner V2 calls after each step: drafts matched over its own matrix of tokens, on its device.

vLLM keeps that matrix on the device for its method `ngram_gpu`, a row for each request, and has put the step's tokens
into it when it asks. So nothing is copied, and nobody waits.
"""

import inspect
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from vllm.distributed.parallel_state import get_tp_group
from vllm.logger import init_logger
from vllm.v1.worker.gpu.input_batch import InputBatch
from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

from draftd.adapters.settings import adapter_settings
from draftd.adapters.sightings import TextReader
from draftd.adapters.stop_ids import token_ids_among
from draftd.adapters.tape_feeder import TapeFeeder
from draftd.adapters.vllm import served_name
from draftd.adapters.vllm_v2 import MisreadError
from draftd.adapters.vllm_v2_rows import WARM_UP, StateRows
from draftd.client.opening import OpenOptions
from draftd.kernels.delivery import Arrival
from draftd.kernels.texts import DeviceTexts, Rule
from draftd.sources.device_matcher import DeviceMatcher

_ABSTRACT = {"init_cudagraph_manager", "capture", "propose"}  # what a speculator has to have
_ARGUMENTS = {"input_batch", "dummy_run"}  # of propose
_OF_BATCH = {"num_reqs", "req_ids", "idx_mapping", "idx_mapping_np"}
_OF_STATES = ("all_token_ids.gpu", "total_len.gpu", "prompt_len.np", "prefill_len.np", "max_seq_len", "req_id_to_index")

logger = init_logger("vllm.draftd")  # below vLLM's own, so that its handlers, format and level apply


class DraftdSpeculator(BaseSpeculator):  # type: ignore[misc]  # vLLM is not there where this is checked
    """Chains of `num_speculative_tokens`, for every request of a step, by the rule of docs/ngram-gpu.md.

    Slots without a draft hold the last token of the request's text, which is the one sampled last. The first rank of a
    tensor-parallel group receives windows for the tapes; all ranks have the same ones in each step."""

    supports_mm_inputs = False
    draft_logits = None  # drafts are certain: verification compares tokens

    def __init__(self, vllm_config: Any, device: torch.device, req_states: Any) -> None:
        """Raises MisreadError, for which vLLM's own is to be taken."""
        _check_interface(req_states)
        speculation = vllm_config.speculative_config
        self.vllm_config = vllm_config
        self.device = device
        self.speculative_config = speculation
        self.num_speculative_steps: int = speculation.num_speculative_tokens
        try:
            texts = DeviceTexts.over(req_states.all_token_ids.gpu, req_states.total_len.gpu)
        except ValueError as error:
            raise MisreadError(f"its request states can't be read: {error}") from error
        rule = Rule(
            speculation.prompt_lookup_min,
            speculation.prompt_lookup_max,
            self.num_speculative_steps,
            pad_with_last=True,
        )
        logger.info("draftd drafts under ngram_gpu, by matches of %d to %d tokens", rule.min_n, rule.max_n)
        group = get_tp_group()
        has_tapes = vllm_config.lora_config is None
        is_shared = has_tapes and group.world_size > 1
        self._matcher = DeviceMatcher(texts, rule, dtype=torch.int64, group=group.device_group if is_shared else None)
        self._rows = StateRows(req_states, self._matcher.open)
        self._reader = TextReader(texts.tokens, texts.lengths)
        self._feeder: TapeFeeder | None = None  # another rank has it, or there are no tapes
        if not has_tapes:
            logger.warning("draftd has no windows for LoRA: a speculator is not told whose weights a request has")
        elif group.rank_in_group == 0:
            self._feeder = _feeder(vllm_config, self._matcher.post, device)
            weakref.finalize(self, self._feeder.close)

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
            self._rows.see(input_batch.req_ids, input_batch.idx_mapping_np)
            rows[:requests] = input_batch.idx_mapping
            rows[requests:] = -1
            drafts = self._matcher.propose().tokens[:requests]
            if self._feeder is not None and self._feeder.has_room:
                self._tell(self._feeder, input_batch)
        return drafts

    def _tell(self, feeder: TapeFeeder, input_batch: Any) -> None:
        if any(request_id.startswith(WARM_UP) for request_id in input_batch.req_ids):
            return
        seen = self._rows.tell(input_batch.req_ids)
        feeder.tell(self._reader.sighting(seen, input_batch.idx_mapping, self._rows.open_ids))


def _feeder(vllm_config: Any, post: Callable[[Sequence[Arrival]], bool], device: torch.device) -> TapeFeeder:
    settings, model = adapter_settings(), vllm_config.model_config
    client = settings.connect(
        served_name(model),
        verifier=f"vllm-{vllm_config.parallel_config.data_parallel_rank}",
        vocabulary_size=model.get_vocab_size(),
    )
    most_tokens = vllm_config.speculative_config.num_speculative_tokens
    options = settings.options() | OpenOptions(shape="chain", stop_ids=_end_ids(model))
    return TapeFeeder(client, post, most_tokens, options, device, logger)


def _end_ids(model_config: Any) -> list[int]:
    """Of the model: those of a request are not told to a speculator."""
    stated = model_config.try_get_generation_config().get("eos_token_id")
    ends = getattr(model_config.hf_text_config, "eos_token_id", None) if stated is None else stated
    return token_ids_among(ends if isinstance(ends, list) else [ends])


def _check_interface(req_states: Any) -> None:
    """That everything is there which is used here and in StateRows. Raises MisreadError."""
    abstract: frozenset[str] = getattr(BaseSpeculator, "__abstractmethods__", frozenset())
    if not abstract <= _ABSTRACT:
        raise MisreadError(f"a speculator has to have {sorted(abstract - _ABSTRACT)}, too")
    missing = _ARGUMENTS - inspect.signature(BaseSpeculator.propose).parameters.keys()
    missing |= _OF_BATCH - inspect.signature(InputBatch).parameters.keys()
    if missing:
        raise MisreadError(f"a speculator is not given {sorted(missing)}")
    try:
        attrgetter(*_OF_STATES)(req_states)
    except AttributeError as error:
        raise MisreadError(f"its request states are others: {error}") from error
