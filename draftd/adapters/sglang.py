"""SGLang: the speculative algorithm DRAFTD, which SGLang finds by itself where draftd is installed beside it.

python -m sglang.launch_server --speculative-algorithm DRAFTD ...

To the engine it is NGRAM in everything (fixed-width trees without a draft model, overlap scheduling), but for where the
trees come from: worker and settings differ, verification is SGLang's own.
"""

from typing import Any

from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import attn_dp_enabled_of
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.speculative.spec_registry import CustomSpecAlgo

NAME = "DRAFTD"
_NGRAM = SpeculativeAlgorithm.NGRAM


class DraftdAlgorithm(CustomSpecAlgo):  # type: ignore[misc]  # SGLang is not there where this is checked
    """What the scheduler asks of an algorithm; SGLang's own class lacks some of it."""

    def is_ngram(self) -> bool:
        return True

    def has_draft_kv(self) -> bool:
        return False

    def need_topk(self) -> bool:
        return False

    def carries_draft_hidden_states(self) -> bool:
        return False

    def get_platform_worker_cls(self) -> None:
        """No platform has a worker of its own for it."""

    def create_future_map(self, *arguments: Any, **options: Any) -> Any:
        return _NGRAM.create_future_map(*arguments, **options)

    def handle_server_args(self, server_args: Any) -> None:
        """Settles what NGRAM settles at its start. Assigning is how a plug-in declares it.

        Raises ValueError for what SGLang's verification of NGRAM trees does not serve.
        """
        if attn_dp_enabled_of(server_args):
            raise ValueError(f"--speculative-algorithm {NAME} does not support DP attention; leave out one of them")
        breadth = server_args.speculative_ngram_max_bfs_breadth
        if breadth > 1 and (server_args.page_size or 1) > 1 and server_args.attention_backend != "flashinfer":
            raise ValueError(
                f"--speculative-algorithm {NAME} drafts trees, which with --page-size {server_args.page_size} only the "
                "flashinfer backend verifies; give --attention-backend flashinfer, or "
                "--speculative-ngram-max-bfs-breadth 1 for chains"
            )
        server_args.enable_mixed_chunk = False
        server_args.speculative_eagle_topk = breadth
        if server_args.device == "cpu":
            server_args.disable_overlap_schedule = True
        if server_args.max_running_requests is None:
            server_args.max_running_requests = 48
        if server_args.speculative_num_draft_tokens is None:
            server_args.speculative_num_draft_tokens = 12
        if server_args.speculative_num_steps is None:
            server_args.speculative_num_steps = server_args.speculative_num_draft_tokens // breadth


def register() -> None:
    """SGLang calls it in each of its processes: entry point of the group sglang.srt.plugins."""
    SpeculativeAlgorithm.register(NAME, supports_overlap=True, spec_class=DraftdAlgorithm)(_worker)
    HookRegistry.register(
        "sglang.srt.arg_groups.lora_hook.check_lora_speculative_compatibility", _allow_lora, HookType.AROUND
    )


def _worker(_server_args: Any) -> type:
    # In the scheduler's process alone: it brings the whole engine along.
    from draftd.adapters.sglang_worker import DraftdWorker

    return DraftdWorker


def _allow_lora(check: Any, server_args: Any) -> None:
    """SGLang's check knows algorithms by their names, and allows NGRAM all adapters."""
    if (server_args.speculative_algorithm or "").upper() != NAME:
        check(server_args)
