"""An engine of two ranks, whose drafts are looked at on each.

Run as `python -m tests.engines.vllm.tensor_parallel DIRECTORY`; writes DIRECTORY/result.json."""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"  # the ranks need not have a core each
os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # functions go to the ranks

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from vllm import LLM, SamplingParams

from tests.engines.vllm.engine import SPECULATION

PROMPTS = [[2, 3, 4, last] * 4 for last in (5, 6, 7)]


def small_model(directory: Path) -> Path:
    """Of random weights; its embeddings are tied, so that it likes to repeat itself."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(directory / "model")
    return directory / "model"


def silence(worker: Any) -> None:
    """Nothing is proposed on this rank, until `record`."""
    worker.model_runner.drafter.propose = lambda sampled, *_, **__: [[] for _ in sampled]


def record(worker: Any) -> bool:
    """From now on what is proposed on this rank is kept. Does this rank ask?"""
    drafter = worker.model_runner.drafter
    del drafter.propose
    propose, drafter.proposed = drafter.propose, []

    def propose_and_keep(*batch: Any, **named: Any) -> list[list[int]]:
        drafts: list[list[int]] = propose(*batch, **named)
        drafter.proposed.append(drafts)
        return drafts

    drafter.propose = propose_and_keep
    return drafter.client is not None


def proposed(worker: Any) -> list[list[list[int]]]:
    """By step and row."""
    return worker.model_runner.drafter.proposed


def main(directory: Path) -> None:
    options = {"dtype": "float32", "enforce_eager": True, "max_model_len": 256, "max_num_seqs": 4}
    llm = LLM(
        str(small_model(directory)),
        skip_tokenizer_init=True,
        tensor_parallel_size=2,
        speculative_config=SPECULATION,
        **options,
    )

    def outputs() -> list[list[int]]:
        sampling = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True, detokenize=False)
        requests = llm.generate([{"prompt_token_ids": prompt} for prompt in PROMPTS], sampling)
        return [list(request.outputs[0].token_ids) for request in requests]

    llm.collective_rpc(silence)
    result: dict[str, Any] = {"expected": outputs(), "asks": llm.collective_rpc(record), "outputs": outputs()}
    (directory / "result.json").write_text(json.dumps(result | {"proposed": llm.collective_rpc(proposed)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
