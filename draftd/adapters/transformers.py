"""Hugging Face transformers: `with DraftdDecoding(model) as drafts: model.generate(**inputs, custom_generate=drafts)`.

Greedy output is what it is without drafts. With sampling, each token is drawn from the target's own distribution at its
place, and a draft is kept as far as it is what was drawn: the distribution of outputs is the same. Drafts are chains.
"""

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
from transformers.generation import GenerateDecoderOnlyOutput
from transformers.utils import logging

from draftd.adapters.health_log import HealthLog
from draftd.adapters.ragged_batch import RaggedBatch, RaggedRow
from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.settings import GREETING_SECONDS, adapter_settings, checked_max_nodes
from draftd.adapters.stop_ids import token_ids_among
from draftd.adapters.transformers_choice import TokenChoice
from draftd.adapters.transformers_limits import BASE_MODEL, refuse_mistaken, refuse_unsupported
from draftd.client.closing import Closing
from draftd.client.opening import OpenOptions

logger = logging.get_logger("transformers.draftd")


class DraftdDecoding(Closing):
    """A decoding method for `generate`, with drafts of at most `max_nodes` tokens for each row and step.

    One serves any number of calls. Threads may share it; they take turns at draftd. Nothing that draftd does, or does
    not do, stops them: without a draft a row is decoded as ever. `settings` are those of draftd.adapters.settings; the
    name of the model is, if they give none, where it was loaded from. `requests` counts what became of the drafts.
    """

    def __init__(self, model: PreTrainedModel, /, max_nodes: int = 8, **settings: Any) -> None:
        """Raises ConfigError for settings that can't be used, ValueError for a `max_nodes` that can't be meant."""
        self._max_nodes = checked_max_nodes(max_nodes)
        self._settings = adapter_settings(**settings)
        self._vocabulary_size = _vocabulary_size(model)
        self.client = self._settings.connect(
            model.config.name_or_path, verifier="transformers", vocabulary_size=self._vocabulary_size
        )
        self.requests = EngineRequests(self.client)
        self._turn = threading.Lock()  # for the requests, which are no thread's
        self.client.check(GREETING_SECONDS)
        self._health_log = HealthLog(self.client, logger)  # after the greeting, which is no step
        self._life = secrets.token_hex(4)
        self._calls = count(1)

    def __call__(
        self,
        model: PreTrainedModel,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        adapters: Sequence[str] | None = None,
        group: str = "",
        **model_inputs: Any,
    ) -> Tensor | GenerateDecoderOnlyOutput:
        """What `generate` calls: int64[rows, n], as its own methods return it.

        Two more arguments of `generate` come here. `adapters` names the LoRA weights of each row where they differ, as
        peft's `adapter_names` does; rows of different ones share no text. `group`: see OpenOptions. Raises TypeError
        or ValueError for arguments that can't be meant, ValueError for what this method can't do.
        """
        refuse_mistaken(len(input_ids), adapters, group)
        refuse_unsupported(model, input_ids, logits_processor, generation_config, model_inputs)
        if _vocabulary_size(model) != self._vocabulary_size:
            raise ValueError(
                f"the model has {_vocabulary_size(model)} tokens, that of this DraftdDecoding {self._vocabulary_size}; "
                "make one for each model"
            )
        names = [_active_adapter(model)] * len(input_ids) if adapters is None else adapters
        padding_id = generation_config.pad_token_id
        if padding_id is None:  # as generate does
            padding_id = next(iter(_end_ids(generation_config)), 0)
        batch = RaggedBatch(model, input_ids, padding_id, generation_config.max_length, model_inputs)
        call = f"{self._life}-{next(self._calls)}"
        requests = [
            _Request(f"{call}-{place}", row, self._options(generation_config, input_ids.shape[1], name, group))
            for place, (row, name) in enumerate(zip(batch.rows, names, strict=True))
        ]
        choice = TokenChoice(logits_processor, stopping_criteria, generation_config.do_sample)
        try:
            while any(row.running for row in batch.rows):
                chains = self._chains(requests, generation_config.max_length)
                logits = batch.forward(chains)
                batch.advance([choice.extend(*it) for it in zip(batch.rows, chains, logits, strict=True)])
                self._finish(requests)
        finally:
            with self._turn:
                self.requests.drop([request.request_id for request in requests])  # what an exception left open
        sequences = batch.sequences[:, : max(row.length for row in batch.rows)]
        if not generation_config.return_dict_in_generate:
            return sequences
        return GenerateDecoderOnlyOutput(sequences=sequences, past_key_values=batch.cache)

    def close(self) -> None:
        """Closes the connection to draftd."""
        self.client.close()

    def __repr__(self) -> str:
        return f"DraftdDecoding({self.client.namespace.model!r} at {self._settings.endpoint}, {self.requests})"

    def _options(self, config: GenerationConfig, prompt_width: int, adapter: str, group: str) -> OpenOptions:
        return {
            **self._settings.options(adapter="" if adapter == BASE_MODEL else adapter, group=group),
            "shape": "chain",
            "stop_ids": _end_ids(config),
            "max_new_tokens": config.max_length - prompt_width,
            "temperature": config.temperature if config.do_sample else 0.0,
        }

    def _chains(self, requests: Sequence["_Request"], longest: int) -> list[list[int]]:
        """A draft for each row, none for those that have ended; one message to draftd."""
        running = [request for request in requests if request.row.running]
        rows = [request.stated(min(self._max_nodes, longest - request.row.length - 1)) for request in running]
        with self._turn:
            answer = self.requests.step(rows)
            self._health_log.look(time.monotonic())
        drafts = {request.request_id: draft.tokens.tolist() for request, draft in zip(running, answer, strict=True)}
        return [drafts.get(request.request_id, []) for request in requests]

    def _finish(self, requests: Sequence["_Request"]) -> None:
        with self._turn:
            for request in requests:
                if not request.row.running and request.request_id in self.requests:
                    self.requests.finish(request.stated(0))


@dataclass(frozen=True, slots=True)
class _Request:
    """A row as draftd knows it."""

    request_id: str
    row: RaggedRow
    options: OpenOptions

    def stated(self, max_nodes: int) -> EngineRow:
        return EngineRow(self.request_id, self.row.committed, self.row.prompt_length, max_nodes, options=self.options)


def _vocabulary_size(model: PreTrainedModel) -> int:
    return int(model.config.get_text_config(decoder=True).vocab_size)


def _end_ids(config: GenerationConfig) -> list[int]:
    ids = config.eos_token_id
    return token_ids_among(ids if isinstance(ids, (list, tuple)) else [ids])


def _active_adapter(model: PreTrainedModel) -> str:
    """Name of the LoRA weights that all rows are run with; empty for none."""
    for module in model.modules():
        names = getattr(module, "active_adapters", None)  # of peft's layers; the model has a method of that name
        if isinstance(names, list):
            return "" if module.disable_adapters else "+".join(names)
    return ""
