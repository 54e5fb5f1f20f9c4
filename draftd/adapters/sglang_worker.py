"""The worker in SGLang's scheduler: its own NGRAM worker, with trees from draftd instead of from its corpus."""

import logging
import time
from collections.abc import Collection, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sglang.srt.runtime_context import get_device, get_parallel, get_schedule, get_serving, get_spec
from sglang.srt.speculative.base_spec_worker import BaseSpecWorker
from sglang.srt.speculative.ngram_worker import NGRAMWorker

from draftd.adapters.health_log import HealthLog
from draftd.adapters.settings import adapter_settings
from draftd.adapters.sglang_requests import SglangRequests, open_options
from draftd.client.opening import OpenOptions
from draftd.client.trees import TreeBatch

logger = logging.getLogger("sglang.srt.draftd")


class DraftdWorker(NGRAMWorker):  # type: ignore[misc]  # SGLang is not there where this is checked
    """Trees of one width for every request of a step, by one message to draftd.

    Nothing that draftd does, or does not do, stops the engine: a request without a draft is decoded as without
    speculation. Of a tensor-parallel group the first rank asks; the others get the same trees.
    """

    def __init__(self, server_args: Any, target_worker: Any, **_: Any) -> None:
        """Raises ConfigError, with which SGLang does not start, for settings that can't be used."""
        BaseSpecWorker.__init__(self)  # NGRAM's own would build its corpus; what else it sets is set here
        self.server_args = server_args
        self._target_worker = target_worker
        self.model_runner = target_worker.model_runner
        self.enable_overlap = not get_schedule().disable_overlap_schedule
        self.page_size = get_schedule().page_size
        self.draft_token_num: int = get_spec().speculative_num_draft_tokens
        self.speculative_num_draft_tokens = self.draft_token_num
        self.max_trie_depth: int = get_spec().speculative_ngram_max_trie_depth
        self.topk: int = get_spec().speculative_eagle_topk
        self.speculative_num_steps = get_spec().speculative_num_steps
        self.device = get_device().device
        self.adaptive_controller = None
        self.grammar_tree_host = None
        self._prev_decode_rids: set[str] = set()
        self.ngram_corpus = _NoCorpus()
        self._group = get_parallel().tp_group
        self._requests: SglangRequests | None = None  # None: another rank asks
        if self._group.rank_in_group == 0:
            self._settings = adapter_settings()
            client = self._settings.connect(
                get_serving().served_model_name,
                verifier="sglang",
                vocabulary_size=self.model_runner.model_config.vocab_size,
            )
            self._requests = SglangRequests(client, self.draft_token_num, self._options)
            self._health_log = HealthLog(client, logger)

    def forward_batch_generation(self, batch: Any, *arguments: Any, **options: Any) -> Any:
        if self._requests is not None and not batch.forward_mode.is_decode():
            self._requests.prefilled()
        return super().forward_batch_generation(batch, *arguments, **options)

    def _prepare_draft_tokens(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """int64[rows * width] and bool[rows * width * width]: nodes, of each row the root first, and who sees whom."""
        trees: TreeBatch | None = None
        if self._requests is not None:
            trees = self._requests.trees(batch.reqs, self._accepted(batch))
            self._health_log.look(time.monotonic())
        if self._group.world_size > 1:
            trees = same_on_all_ranks(trees, len(batch.reqs), self.draft_token_num, self._group)
        assert trees is not None, "who is alone asks"
        return trees.tokens.ravel(), trees.mask().ravel()

    def _accepted(self, batch: Any) -> Sequence[Sequence[int]]:
        """Of each request, what the last step emitted and is not in its output_ids yet.

        With overlap the scheduler processes results one step later; but it has, if a prefill came between the steps. So
        lengths decide: all but the last token are in the KV cache.
        """
        missing = [
            length + 1 - len(request.origin_input_ids) - len(request.output_ids)
            for request, length in zip(batch.reqs, batch.seq_lens_cpu.tolist(), strict=True)
        ]
        if not any(missing):
            return [()] * len(missing)
        tokens = batch.spec_info.accept_tokens.cpu().reshape(-1, self.draft_token_num).tolist()
        lengths = batch.spec_info.accept_lens.cpu().tolist()
        return [row[end - count : end] for row, end, count in zip(tokens, lengths, missing, strict=True)]

    def _options(self, request: Any) -> OpenOptions:
        shape: Literal["tree", "chain"] = "chain" if self.topk == 1 else "tree"
        return open_options(request, self._settings, adapter=self._adapter(request.lora_id), shape=shape)

    def _adapter(self, lora_id: str | None) -> str:
        """Its name. Another process of SGLang's may be unloading it: then what names it here."""
        if lora_id is None:
            return ""
        loaded = self.model_runner.lora_manager.lora_refs.get(lora_id)
        return lora_id if loaded is None or loaded.lora_name is None else str(loaded.lora_name)

    def note_request_finished(self, *, rid: str, natural_stop: bool) -> None:  # noqa: ARG002  (SGLang names it)
        if self._requests is not None:
            self._requests.finish(rid)

    def _update_ngram_corpus(self, batch: Any) -> None:
        """NGRAM inserts here what was accepted; draftd hears it with the next step."""


class _NoCorpus:
    """In the place of NGRAM's corpus, of which the worker's other methods want no more than this."""

    def erase_match_state(self, request_ids: Collection[str]) -> None:
        """Requests that left the batch may come back; draftd is told when they are over."""

    def reset(self) -> None:
        """What the KV cache forgets, draftd need not."""


def same_on_all_ranks(trees: TreeBatch | None, rows: int, width: int, group: Any) -> TreeBatch:
    """The trees of the group's first rank, on every rank. `trees`: of the rank itself; None where it did not ask.

    The broadcast has the size that every rank expects, whatever became of the drafts.
    """
    table = torch.empty((2, rows, width), dtype=torch.int64)
    if trees is not None:
        table[0], table[1] = torch.from_numpy(trees.tokens), torch.from_numpy(trees.parents)
    torch.distributed.broadcast(table, src=group.ranks[0], group=group.cpu_group)
    tokens, parents = table.numpy()
    sizes = 1 + (parents != np.arange(width)).sum(axis=1)  # padding is its own parent, as the root is
    return TreeBatch(tokens, parents, sizes)
