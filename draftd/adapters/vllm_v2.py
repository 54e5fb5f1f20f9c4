"""vLLM's model runner V2, which never waits for the host: draftd's matcher under its method `ngram_gpu`.

    DRAFTD_ADAPTER_NGRAM_GPU=true vllm serve MODEL --speculative-config \
      '{"method": "ngram_gpu", "num_speculative_tokens": 8, "prompt_lookup_min": 1, "prompt_lookup_max": 64}'

vLLM calls `register` in each of its processes, also where nobody asks for draftd: this file alone imports nothing.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

METHOD = "ngram_gpu"
OLDEST = (0, 33)  # of vLLM
PACKAGE = "vllm.v1.worker.gpu.spec_decode"  # defines init_speculator
RUNNER = "vllm.v1.worker.gpu.model_runner"  # calls it, by a name of its own
_PARAMETERS = ["vllm_config", "device", "req_states"]
_SETTINGS = {"DRAFTD_ADAPTER_NGRAM_GPU", "DRAFTD_ADAPTER_CONFIG"}  # where it is asked for; others don't matter here


class MisreadError(Exception):
    """This vLLM is not the one that is known here. The message says in what."""


@dataclass(frozen=True)
class InitSpeculator:
    """Stands in for vLLM's function of that name: other methods are still its own."""

    original: Callable[[Any, Any, Any], Any]

    def __call__(self, vllm_config: Any, device: Any, req_states: Any) -> Any:
        if vllm_config.speculative_config.method != METHOD:
            return self.original(vllm_config, device, req_states)
        try:
            from draftd.adapters.vllm_v2_speculator import DraftdSpeculator

            return DraftdSpeculator(vllm_config, device, req_states)
        except (ImportError, MisreadError) as error:
            _refuse(str(error))
            return self.original(vllm_config, device, req_states)


def register() -> None:
    """Entry point of the group vllm.general_plugins. May be called any number of times.

    Raises nothing: whatever speaks against it is one line in vLLM's log, and vLLM stays as it is."""
    if not _SETTINGS.intersection(name.upper() for name in os.environ):
        return
    from draftd.adapters.settings import adapter_settings
    from draftd.config import ConfigError

    try:
        is_asked_for = adapter_settings().ngram_gpu
    except ConfigError as error:
        _refuse(str(error))
        return
    if not is_asked_for:
        return
    problem = _problem()
    if problem:
        _refuse(problem)
        return
    package: Any = importlib.import_module(PACKAGE)
    if not isinstance(package.init_speculator, InitSpeculator):
        package.init_speculator = InitSpeculator(package.init_speculator)
    # The runner, which is large, is left to vLLM to import, and takes the name from there; unless it has done so.
    runner: Any = sys.modules.get(RUNNER)
    if runner is not None:
        runner.init_speculator = package.init_speculator


def _problem() -> str | None:
    """What of this vLLM is not as draftd knows it."""
    import vllm

    if vllm.__version_tuple__[:2] < OLDEST:
        return f"vLLM is {vllm.__version__}, and it takes {'.'.join(map(str, OLDEST))}"
    try:
        original = getattr(importlib.import_module(PACKAGE), "init_speculator", None)
    except ImportError as error:
        return f"vLLM is {vllm.__version__}, where {error}"
    if isinstance(original, InitSpeculator):
        return None
    parameters = list(inspect.signature(original).parameters) if callable(original) else None
    if parameters != _PARAMETERS:
        return f"{PACKAGE}.init_speculator takes {parameters} in vLLM {vllm.__version__}, where {_PARAMETERS} is known"
    return None


def _refuse(problem: str) -> None:
    from vllm.logger import init_logger

    # Below vLLM's own, so that its handlers, format and level apply.
    init_logger("vllm.draftd").warning(
        "draftd does not draft under the method %s: %s. vLLM is left as it is; for drafts from draftd use the method "
        "custom_class with the model draftd.adapters.vllm.DraftdProposer (docs/engines.md)",
        METHOD,
        problem,
    )
