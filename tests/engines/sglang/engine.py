"""SGLang's decode steps without its GPU: its requests, its worker with our trees, its kernels in Triton's interpreter.

Instead of a model there is a rule, and instead of a scheduler the order in which it does things.
"""

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from sglang.kernels.ops.speculative import reconstruct_tree, spec_tree
from sglang.srt.arg_groups.model_override_base import model_config_of
from sglang.srt.distributed import parallel_state
from sglang.srt.managers.schedule_batch import Req, ScheduleBatch
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.plugins import load_plugins
from sglang.srt.runtime_context import publish
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative import ngram_worker
from sglang.srt.speculative.ngram_info import NgramVerifyInput
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from tests.engines.model import model_directory

VOCABULARY = 40
WIDTH = 8
STOP = VOCABULARY - 1

Rule = Callable[[Sequence[int]], int]  # the target's greedy choice after a text


def rule(text: Sequence[int]) -> int:
    """Depends on the last two tokens, so that texts soon repeat themselves; never STOP."""
    return (text[-1] + 2 * text[-2] + 1) % 7


def decoded(prompt: Sequence[int], tokens: int, target: Rule = rule) -> list[int]:
    """Without speculation."""
    text = list(prompt)
    for _ in range(tokens):
        text.append(target(text))
    return text[len(prompt) :]


def start_up(directory: Path, *, rank: int = 0, ranks: int = 1) -> ServerArgs:
    """What a scheduler's process does before it makes its worker. Once for each process."""
    load_plugins()
    arguments = ServerArgs(
        model_path=str(model_directory()),
        served_model_name="m",
        device="cpu",
        tp_size=ranks,
        speculative_algorithm="DRAFTD",
        speculative_num_draft_tokens=WIDTH,
    )
    arguments.resolve_once()
    publish(arguments, role="scheduler")
    parallel_state.init_distributed_environment(
        backend="gloo",
        world_size=ranks,
        rank=rank,
        local_rank=rank,
        distributed_init_method=f"file://{directory}/ranks",
    )
    parallel_state.initialize_model_parallel(backend="gloo")
    # There is no KV cache, and the kernels take the path that is Triton's alone.
    ngram_worker.assign_extend_cache_locs_func = lambda **_: None
    ngram_worker.move_accept_tokens_to_target_kvcache = lambda *_: None
    reconstruct_tree._is_xpu = spec_tree._is_xpu = True
    return arguments


def request(rid: str, prompt: Sequence[int], tokens: float, **sampling: Any) -> Req:
    """A greedy one."""
    parameters = SamplingParams(max_new_tokens=tokens, temperature=0.0, **sampling)
    parameters.normalize(None)
    return Req(rid, "", array("q", prompt), parameters, eos_token_ids={STOP}, vocab_size=VOCABULARY)


class Target:
    """What a worker knows of the target: its forward pass over a batch of trees looks at nothing but the batch."""

    def __init__(self, arguments: ServerArgs, target: Rule) -> None:
        self._target = target
        self.model_runner = SimpleNamespace(
            max_running_requests=8,
            model_config=model_config_of(arguments),
            lora_manager=SimpleNamespace(lora_refs={"id-1": SimpleNamespace(lora_name="poet")}),
            watermark_state=None,
            hybrid_gdn_config=None,
        )
        self.expected: list[list[int]] = []  # of the last step: what greedy decoding along the trees emits
        self.branched = False  # has any node had two children?

    def get_memory_pool(self) -> tuple[None, None]:
        return None, None

    def forward_batch_generation(self, batch: ScheduleBatch, **_: Any) -> SimpleNamespace:
        trees = batch.spec_info
        tokens = trees.draft_token.reshape(-1, WIDTH).tolist()
        positions = trees.positions.reshape(-1, WIDTH).tolist()
        masks = trees.custom_mask.split([WIDTH * (length + WIDTH) for length in batch.seq_lens.tolist()])
        logits = torch.zeros((len(batch.reqs), WIDTH, VOCABULARY))
        self.expected = []
        for row, length in enumerate(batch.seq_lens.tolist()):
            mask = masks[row].reshape(WIDTH, length + WIDTH)
            assert mask[:, :length].all(), "every node sees all of the committed text"
            seen = [frozenset(np.flatnonzero(line).tolist()) for line in mask[:, length:].numpy()]
            parents = [sees - {node} for node, sees in enumerate(seen) if len(sees) > 1]
            self.branched |= len(set(parents)) < len(parents)
            committed = batch.texts[row][:length]
            choices = []
            for node in range(WIDTH):
                context = [*committed, *(tokens[row][other] for other in sorted(seen[node]))]
                assert positions[row][node] == len(context) - 1
                choices.append(self._target(context))
                logits[row, node, choices[-1]] = 1.0
            self.expected.append(_emitted(tokens[row], seen, choices))
        return SimpleNamespace(
            logits_output=SimpleNamespace(next_token_logits=logits.reshape(-1, VOCABULARY)), can_run_cuda_graph=False
        )


def _emitted(tokens: Sequence[int], seen: Sequence[frozenset[int]], choices: Sequence[int]) -> list[int]:
    """Brute force: from the root on to the child that is the target's choice, as long as there is one."""
    node, emitted = 0, [choices[0]]
    while children := [
        child
        for child, sees in enumerate(seen)
        if child != node and sees == seen[node] | {child} and tokens[child] == emitted[-1]
    ]:
        node = children[0]
        emitted.append(choices[node])
    return emitted


class SglangEngine:
    """The batch of a scheduler. With overlap, results are processed after the next step was launched."""

    def __init__(self, arguments: ServerArgs, *, overlap: bool, breadth: int = 10, target: Rule = rule) -> None:
        self.target = Target(arguments, target)
        self.algorithm = SpeculativeAlgorithm.from_string("DRAFTD")
        worker = self.algorithm.create_worker(arguments)
        self.worker = worker(server_args=arguments, gpu_id=0, nccl_port=0, target_worker=self.target)
        self.worker.enable_overlap, self.worker.topk = overlap, breadth
        self.worker.alloc_memory_pool()
        self.running: list[Req] = []
        self.accepted = 0
        self.steps = 0  # of requests
        self._rule = target
        self._texts: dict[str, list[int]] = {}  # committed on the device, ahead of what is processed
        self._relay: NgramVerifyInput | None = None
        self._unprocessed: list[tuple[Req, list[int], bool]] = []

    def admit(self, *requests: Req) -> None:
        """Prefills them, which emits their next token."""
        self._process()
        first = []
        for new in requests:
            text = [*new.origin_input_ids, *new.output_ids]
            first.append(self._rule(text))
            self._texts[new.rid] = [*text, first[-1]]
            self._unprocessed.append((new, first[-1:], False))
        relay = NgramVerifyInput(
            draft_token_num=WIDTH,
            new_seq_lens=self._lengths(requests),
            accept_tokens=torch.tensor([[token] + [0] * (WIDTH - 1) for token in first], dtype=torch.int32).flatten(),
            accept_lens=torch.ones(len(first), dtype=torch.int32),
        )
        if self.running:
            self._relay.merge_batch(relay)
        else:
            self._relay = relay
        self.running.extend(requests)
        if not self.worker.enable_overlap:
            self._process()

    def retract(self, victim: Req) -> None:
        """Takes a request out of the batch; `admit` brings it back."""
        self._process()
        self._keep([other for other in self.running if other is not victim])
        victim.is_retracted = True

    def batch(self, requests: Sequence[Req], relay: NgramVerifyInput) -> ScheduleBatch:
        """What of a decode step's batch the worker looks at, but for the lengths."""
        batch = ScheduleBatch(reqs=list(requests), device="cpu", has_grammar=False)
        batch.spec_algorithm, batch.forward_mode, batch.spec_info = self.algorithm, ForwardMode.DECODE, relay
        batch.req_to_token_pool = SimpleNamespace(req_to_token=None)
        batch.sampling_info = _GREEDY
        return batch

    def step(self) -> None:
        self._keep([other for other in self.running if not other.finished()])
        if not self.running:
            return self._process()
        batch = self.batch(self.running, self._relay)
        batch.seq_lens = batch.seq_lens_cpu = self._lengths(self.running)
        batch.texts = [self._texts[other.rid] for other in self.running]
        result = self.worker.forward_batch_generation(batch)
        emitted = [
            row[:length]
            for row, length in zip(
                result.next_token_ids.reshape(-1, WIDTH).tolist(), result.accept_lens.tolist(), strict=True
            )
        ]
        assert emitted == self.target.expected, "SGLang's kernels accept what brute force accepts"
        if self.worker.enable_overlap:
            self._process()
        for other, tokens in zip(self.running, emitted, strict=True):
            self._texts[other.rid] += tokens
            self._unprocessed.append((other, tokens, True))
        self._relay = result.next_draft_input
        if not self.worker.enable_overlap:
            self._process()
        return None

    def run(self, steps: int = 1000) -> None:
        """Until all have finished, or for so many steps."""
        while (self.running or self._unprocessed) and steps:
            self.step()
            steps -= 1

    def _lengths(self, requests: Sequence[Req]) -> torch.Tensor:
        """Tokens in the KV cache: the last one is not, it is the root of the next tree."""
        return torch.tensor([len(self._texts[other.rid]) - 1 for other in requests])

    def _keep(self, requests: list[Req]) -> None:
        if len(requests) < len(self.running):
            places = [place for place, other in enumerate(self.running) if other in requests]
            self._relay.filter_batch(torch.tensor(places, dtype=torch.int64))
            self.running = requests

    def _process(self) -> None:
        """What SchedulerBatchResultProcessor does with the tokens of a step."""
        for other, tokens, is_decoded in self._unprocessed:
            if other.finished():
                continue
            other.output_ids.extend(tokens)
            if is_decoded:
                self.steps += 1
                self.accepted += len(tokens) - 1
            other.update_finish_state(len(tokens))
            if other.finished() and is_decoded:
                self.worker.note_request_finished(rid=other.rid, natural_stop=False)
        self._unprocessed = []


_GREEDY = SimpleNamespace(
    acc_additive_penalties=None,
    acc_scaling_penalties=None,
    logit_bias=None,
    is_all_greedy=True,
    has_watermark_candidates=False,
)
