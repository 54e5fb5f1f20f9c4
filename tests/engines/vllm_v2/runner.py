"""vLLM's model runner V2 without a GPU: made by its own constructor, with its request states and kernels, but no model.

Triton's interpreter runs the kernels. Told to vLLM is what is so here: no pinned memory that a device reads. Stood in
for are CUDA streams and events, which the constructor makes and nothing here uses.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed.parallel_state import ensure_model_parallel_initialized, init_distributed_environment
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.worker.gpu import buffer_utils, model_runner
from vllm.v1.worker.gpu.input_batch import InputBatch, post_update

REQUESTS, LONGEST, MOST = 4, 256, 5  # at a time; tokens of one; tokens of a draft
CPU = torch.device("cpu")


def configured(model_dir: Path, ranks: int = 1, **options: Any) -> VllmConfig:
    """As vLLM resolves it, which loads its plug-ins. `options`: of the speculation."""
    speculation = {"method": "ngram_gpu", "num_speculative_tokens": MOST} | options
    arguments = EngineArgs(
        model=str(model_dir),
        dtype="float32",
        skip_tokenizer_init=True,
        enforce_eager=True,
        max_model_len=LONGEST,
        max_num_seqs=REQUESTS,
        tensor_parallel_size=ranks,
        speculative_config=speculation,
    )
    return arguments.create_engine_config()


def meet(config: VllmConfig, meeting: str, rank: int = 0, ranks: int = 1) -> None:
    """The tensor-parallel group, of which this process is a rank; `meeting`: where, as torch takes it."""
    with set_current_vllm_config(config):
        init_distributed_environment(ranks, rank, meeting, rank, "gloo")
        ensure_model_parallel_initialized(ranks, 1)


class Runner:
    """Its steps are those of a test: what each request emitted is told, not computed."""

    def __init__(self, config: VllmConfig) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(buffer_utils, "is_uva_available", lambda: False)
            for name in ("Stream", "Event", "current_stream"):
                patch.setattr(torch.cuda, name, lambda *_, **__: SimpleNamespace())
            self.runner = model_runner.GPUModelRunner(config, CPU)
        self.speculator = self.runner.speculator
        self.texts: dict[str, list[int]] = {}

    def add(self, request_id: str, prompt: Sequence[int], known: Sequence[int] = ()) -> None:
        """`known`: output that a preempted request comes back with."""
        text = [*prompt, *known]
        self.runner.req_states.add_request(request_id, len(prompt), text, 0, LONGEST - len(prompt))
        self.runner.req_states.apply_staged_writes()
        self.texts[request_id] = text

    def remove(self, request_id: str) -> None:
        self.runner.req_states.remove_request(request_id)
        del self.texts[request_id]

    def step(self, emitted: Mapping[str, Sequence[int]], **options: Any) -> list[list[int]]:
        """Drafts of the requests that emitted something, or whose prompt is under way, in this order. As the runner's
        `sample_tokens` does it; `options` go to propose, too."""
        states = self.runner.req_states
        rows = np.array([states.req_id_to_index[request_id] for request_id in emitted], np.intp)
        counts = torch.tensor([len(tokens) for tokens in emitted.values()], dtype=torch.int32)
        sampled = torch.tensor([[*tokens, *[0] * (MOST + 1 - len(tokens))] for tokens in emitted.values()])
        for request_id, tokens in emitted.items():
            self.texts[request_id].extend(tokens)
        batch = dataclasses.replace(
            InputBatch.make_dummy(len(rows), len(rows), self.runner.input_buffers),
            req_ids=list(emitted),
            idx_mapping=torch.from_numpy(rows),
            idx_mapping_np=rows,
        )
        rejected = torch.zeros_like(counts)
        with torch.inference_mode():
            post_update(
                batch.idx_mapping,
                states.num_computed_tokens.gpu,
                states.last_sampled_tokens,
                None,
                sampled,
                counts,
                rejected,
                batch.query_start_loc,
                states.all_token_ids.gpu,
                states.total_len.gpu,
            )
            drafts = self.speculator.propose(
                batch,
                None,
                None,
                torch.zeros(len(rows), 1),
                None,
                counts,
                rejected,
                states.last_sampled_tokens,
                states.next_prefill_tokens,
                torch.zeros(REQUESTS),
                torch.zeros(REQUESTS),
                num_speculative_tokens=MOST,
                dp_sync_state=None,
                mm_inputs=None,
                **options,
            )
            states.draft_tokens[batch.idx_mapping] = drafts  # refused for another dtype or shape
        return states.draft_tokens[batch.idx_mapping].tolist()
