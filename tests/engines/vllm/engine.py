"""One vLLM engine in this process, run step by step, whose drafter can be exchanged."""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest
from vllm.v1.spec_decode.custom_class_proposer import create_custom_proposer

from draftd.adapters.vllm import DraftdProposer

MOST_TOKENS = 8  # of a draft
LONGEST = 1024  # tokens of prompt and output
SPECULATION = {
    "method": "custom_class",
    "model": "draftd.adapters.vllm.DraftdProposer",
    "num_speculative_tokens": MOST_TOKENS,
}


class Engine:
    """`options` are those of vllm.LLM. A context: leaving it closes what its proposer holds."""

    def __init__(self, model_dir: Path, **options: Any) -> None:
        self._llm = LLM(
            str(model_dir), dtype="float32", enforce_eager=True, max_model_len=LONGEST, max_num_seqs=8, **options
        )
        self.core = self._llm.llm_engine.engine_core.engine_core
        self.runner = self.core.model_executor.driver_worker.worker.model_runner
        self._ids = map(str, count())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if hasattr(self.runner, "drafter"):
            self.proposer.client.close()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        most: int = 128,
        during: Callable[[int], object] = lambda step: None,
        adapters: Sequence[LoRARequest | None] | None = None,
        **sampling: Any,
    ) -> list[list[int]]:
        """Greedy outputs of at most `most` tokens, of all prompts at once. `during` is called before each step."""
        engine = self._llm.llm_engine
        ids = [next(self._ids) for _ in prompts]
        for request_id, prompt, adapter in zip(ids, prompts, adapters or [None] * len(ids), strict=True):
            parameters = SamplingParams(temperature=0, max_tokens=most, **sampling)
            engine.add_request(request_id, {"prompt_token_ids": list(prompt)}, parameters, lora_request=adapter)
        outputs: dict[str, list[int]] = {}
        for step in count():
            if not engine.has_unfinished_requests():
                return [outputs[request_id] for request_id in ids]
            during(step)
            for output in engine.step():
                outputs[output.request_id] = list(output.outputs[0].token_ids)
        raise AssertionError("unreachable")

    def draft_from(self, endpoint: str, deadline: float = 5.0) -> DraftdProposer:
        """A new proposer, made and loaded as at the engine's start. `deadline` in seconds."""
        self.proposer.client.close()
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("DRAFTD_ADAPTER_ENDPOINT", endpoint)
            environment.setenv("DRAFTD_ADAPTER_DEADLINE", str(deadline))
            _load_drafter(self.runner)
        return self.proposer

    @property
    def proposer(self) -> DraftdProposer:
        assert isinstance(self.runner.drafter, DraftdProposer)
        return self.runner.drafter


def _load_drafter(self: Any) -> None:
    """A method of the model runner, as far as the proposer can tell."""
    self.drafter = create_custom_proposer(self.vllm_config)
    self.drafter.load_model(self.model)
