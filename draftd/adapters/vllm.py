"""vLLM: a proposer for its `custom_class` method, which the V1 model runner calls after each step.

    speculative_config={
        "method": "custom_class", "model": "draftd.adapters.vllm.DraftdProposer", "num_speculative_tokens": 8
    }

vLLM tells a proposer neither request ids nor what became of its drafts; both are read from the model runner.
"""

import sys
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.distributed.parallel_state import get_tp_group
from vllm.logger import init_logger

from draftd.adapters.health_log import HealthLog
from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.settings import GREETING_SECONDS, AdapterSettings, adapter_settings
from draftd.adapters.stop_ids import token_ids_among
from draftd.client import Client
from draftd.client.opening import OpenOptions

GROUP_ARGUMENT = "draftd_group"  # of SamplingParams.extra_args (vllm_xargs over HTTP): OpenOptions.group

logger = init_logger("vllm.draftd")  # below vLLM's own, so that its handlers, format and level apply


class DraftdProposer:
    """Drafts chains of at most `num_speculative_tokens` for every request of a step, by one message to draftd.

    Nothing that draftd does, or does not do, stops the engine: a request without a draft is decoded as without
    speculation. Of a tensor-parallel group the first rank asks; the others get the same drafts.
    """

    def __init__(self, vllm_config: Any) -> None:
        """Raises ConfigError, which vLLM reports at its start, for settings that can't be used."""
        self._settings = adapter_settings()
        self._config = vllm_config
        self._most_tokens: int = vllm_config.speculative_config.num_speculative_tokens
        self.asking: Asking | None = None  # another rank asks; or load_model was not called yet
        self._shared_drafts: SharedDrafts | None = None  # there is no other rank

    @property
    def client(self) -> Client | None:
        """Of draftd; None where this rank does not ask."""
        return self.asking.client if self.asking is not None else None

    def __repr__(self) -> str:
        return f"DraftdProposer({self._settings.endpoint}, {self.asking or 'does not ask'})"

    def load_model(self, *_: Any, **__: Any) -> None:
        """There is none to load. vLLM's model runner calls this: here it becomes known, and draftd is greeted."""
        runner = _calling_runner()
        # While one text has no room for a whole draft, vLLM drafts zeros for the whole batch. Ours fit the room.
        runner.effective_drafter_max_model_len = runner.max_model_len + self._most_tokens
        group = get_tp_group()
        if group.world_size > 1:
            self._shared_drafts = SharedDrafts(group, runner.max_num_reqs, self._most_tokens)
        if group.rank_in_group == 0:
            client = self._settings.connect(
                served_name(self._config.model_config),
                verifier=f"vllm-{self._config.parallel_config.data_parallel_rank}",
                vocabulary_size=self._config.model_config.get_vocab_size(),
            )
            health = client.check(GREETING_SECONDS)
            if health.state == "serving":
                logger.info("draftd %s drafts, at %s", health.drafter_version, self._settings.endpoint)
            else:
                logger.warning("draftd is not there yet, at %s: %s", self._settings.endpoint, health.last_error)
            self.asking = Asking(runner, client, self._settings, self._most_tokens)

    def propose(
        self,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: NDArray[np.int32],
        token_ids_cpu: NDArray[np.int32],
        slot_mappings: Any = None,  # noqa: ARG002  (vLLM names it)
    ) -> list[list[int]]:
        """One draft per row of the batch. `sampled_token_ids`: what each row emitted in this step, nothing while its
        prompt is not through. `num_tokens_no_spec`, `token_ids_cpu`: int32[rows], int32[rows, max_model_len], each
        row's committed text."""
        drafts: list[list[int]] = []
        if self.asking is not None:
            drafts = self.asking.drafts(sampled_token_ids, num_tokens_no_spec, token_ids_cpu)
        if self._shared_drafts is not None:
            drafts = self._shared_drafts.exchange(drafts, len(sampled_token_ids))
        return drafts


class Asking:
    """What the rank that asks does: reads the batch off the model runner, states it, and takes the drafts."""

    def __init__(self, runner: Any, client: Client, settings: AdapterSettings, most_tokens: int) -> None:
        self.client = client
        self.requests = EngineRequests(client)
        self._runner = runner
        self._settings = settings
        self._most_tokens = most_tokens
        self._log = HealthLog(client, logger)
        self._last_drafts: dict[str, list[int]] = {}  # of the last step, by request id

    def __repr__(self) -> str:
        return repr(self.requests)

    def drafts(
        self,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: NDArray[np.int32],
        token_ids_cpu: NDArray[np.int32],
    ) -> list[list[int]]:
        """See DraftdProposer.propose."""
        runner = self._runner
        batch, states = runner.input_batch, runner.requests
        self.requests.keep(states.keys())  # what is preempted has left the batch, what is finished these, too
        lengths = num_tokens_no_spec[: len(sampled_token_ids)].tolist()
        places: list[int] = []  # of the rows in the batch
        rows: list[EngineRow] = []
        # How many tokens of each row were in the step: what of a prompt was in it is the guess for the next.
        starts = runner.query_start_loc.np
        prefilled = 0
        for place, sampled in enumerate(sampled_token_ids):
            if not sampled:
                self.requests.step_clock.forget()  # a part of its prefill was in the step
                prefilled += int(starts[place + 1] - starts[place])
                continue
            request_id, length = batch.req_ids[place], lengths[place]
            state = states[request_id]
            prompt = state.num_prompt_tokens
            # Where a prompt was given as embeddings, what stands in its place is another request's text.
            first = prompt if state.prompt_token_ids is None else 0
            room = runner.max_model_len - length - 1
            most_tokens = self._most_tokens if room > self._most_tokens else max(0, room)
            # The scheduler cuts drafts to its token budget and to the grammar, and drops those of preempted requests.
            scheduled, drafted = batch.spec_token_ids[place], self._last_drafts.get(request_id, [])
            verified = len(scheduled) if scheduled == drafted[: len(scheduled)] else 0
            options = None if request_id in self.requests else self._options(state)
            text = token_ids_cpu[place, first:length]
            rows.append(EngineRow(request_id, text, prompt - first, most_tokens, verified, options))
            places.append(place)
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        if rows:
            for place, draft in zip(places, self.requests.step(rows, prefilled), strict=True):
                drafts[place] = draft.tokens.tolist()
        self._last_drafts = dict(zip(batch.req_ids, drafts, strict=True))
        self._log.look(time.monotonic())
        return drafts

    def _options(self, state: Any) -> OpenOptions:
        sampling = state.sampling_params
        room = self._runner.max_model_len - state.num_prompt_tokens
        return {
            **self._settings.options(
                adapter=state.lora_request.lora_name if state.lora_request else "",
                group=str((sampling.extra_args or {}).get(GROUP_ARGUMENT, "")),
            ),
            "shape": "chain",
            "stop_ids": token_ids_among([*(sampling.stop_token_ids or ()), sampling.eos_token_id]),  # eos None: ignored
            "max_new_tokens": room if sampling.max_tokens is None else min(sampling.max_tokens, room),
            "temperature": sampling.temperature,
        }


class SharedDrafts:
    """Drafts of the first rank for all ranks of a tensor-parallel group.

    The broadcast has a fixed size, and every rank takes part in every step, whatever became of the drafts.
    """

    def __init__(self, group: Any, most_rows: int, most_tokens: int) -> None:
        self._group = group
        self._table = torch.zeros((most_rows, 1 + most_tokens), dtype=torch.int32)  # a row: length, tokens
        self._rows = self._table.numpy()

    def exchange(self, drafts: list[list[int]], count: int) -> list[list[int]]:
        """The first rank's `drafts`, on every rank: one for each of the `count` rows of the step."""
        for row, draft in zip(self._rows, drafts, strict=False):
            row[0] = len(draft)
            row[1 : 1 + len(draft)] = draft
        torch.distributed.broadcast(self._table, src=self._group.ranks[0], group=self._group.cpu_group)
        return [row[1 : 1 + row[0]].tolist() for row in self._rows[:count]]


def served_name(model_config: Any) -> str:
    """What its clients call the model, or where it was loaded from."""
    name = model_config.served_model_name
    return str(name[0] if isinstance(name, list) else name or model_config.model)


def _calling_runner() -> Any:
    """The model runner that calls load_model: vLLM hands it to no proposer.

    Raises RuntimeError for a caller that is none of the kind this adapter reads."""
    frame = sys._getframe(2)
    runner = frame.f_locals.get("self")
    if not all(hasattr(runner, name) for name in ("input_batch", "requests", "max_num_reqs")):
        raise RuntimeError(
            f"DraftdProposer: {frame.f_code.co_qualname} is no model runner of the kind that it reads; "
            "use vLLM 0.32 with its V1 model runner"
        )
    return runner
