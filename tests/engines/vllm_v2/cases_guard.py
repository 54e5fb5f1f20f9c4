"""The plug-in in vLLM 0.33: found by vLLM, in place of its function, and out of the way of all else."""

import importlib
import sys

import pytest
import torch
from vllm.config import VllmConfig
from vllm.v1.worker.gpu import model_runner, spec_decode
from vllm.v1.worker.gpu.spec_decode.ngram.speculator import NgramGPUSpeculator
from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

from draftd.adapters import vllm_v2
from draftd.adapters.vllm_v2 import InitSpeculator, register
from tests.engines.vllm_v2.runner import Runner


@pytest.fixture
def untouched(config: VllmConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM as it comes, before plug-ins."""
    original = spec_decode.init_speculator.original
    monkeypatch.setattr(spec_decode, "init_speculator", original)
    monkeypatch.setattr(model_runner, "init_speculator", original)


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if record.name == "vllm.draftd"]
    assert all("custom_class" in message and "docs/engines.md" in message for message in messages)
    return messages


def test_vllm_found_it_and_the_runner_calls_it(config: VllmConfig) -> None:
    assert isinstance(model_runner.init_speculator, InitSpeculator)
    assert model_runner.init_speculator is spec_decode.init_speculator


@pytest.mark.usefixtures("untouched")
def test_a_runner_that_was_imported_before_calls_it_too_and_once() -> None:
    register()
    register()
    assert isinstance(model_runner.init_speculator, InitSpeculator)
    assert not isinstance(model_runner.init_speculator.original, InitSpeculator)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("asked_for", [None, "false"])
def test_nothing_is_touched_where_nobody_asks(asked_for: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAFTD_ADAPTER_NGRAM_GPU")
    if asked_for is not None:
        monkeypatch.setenv("DRAFTD_ADAPTER_NGRAM_GPU", asked_for)
    register()
    assert not isinstance(spec_decode.init_speculator, InitSpeculator)
    assert not isinstance(model_runner.init_speculator, InitSpeculator)


@pytest.mark.usefixtures("untouched")
def test_a_setting_that_cannot_be_used_is_named_and_vllm_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_TENNANT", "acme")
    register()
    assert not isinstance(model_runner.init_speculator, InitSpeculator)
    (message,) = refusals(caplog)
    assert "DRAFTD_ADAPTER_TENNANT is unknown" in message


@pytest.mark.usefixtures("untouched")
def test_a_function_with_other_parameters_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def init_speculator(vllm_config: object, device: object) -> None: ...

    monkeypatch.setattr(spec_decode, "init_speculator", init_speculator)
    register()
    assert spec_decode.init_speculator is init_speculator
    (message,) = refusals(caplog)
    assert "takes ['vllm_config', 'device']" in message


@pytest.mark.usefixtures("untouched")
def test_an_older_vllm_is_left_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(importlib.import_module("vllm"), "__version_tuple__", (0, 32, 9))
    register()
    assert not isinstance(model_runner.init_speculator, InitSpeculator)
    assert len(refusals(caplog)) == 1


@pytest.mark.usefixtures("untouched")
def test_a_vllm_without_the_package_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, vllm_v2.PACKAGE, None)
    register()
    assert not isinstance(model_runner.init_speculator, InitSpeculator)
    assert len(refusals(caplog)) == 1


def test_other_methods_are_vllms(config: VllmConfig, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.speculative_config, "method", "ngram")
    made = model_runner.init_speculator(config, torch.device("cpu"), runner.runner.req_states)
    assert isinstance(made, NgramGPUSpeculator)


def test_states_that_would_be_misread_are_left_to_vllm(
    config: VllmConfig, runner: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    states = runner.runner.req_states
    monkeypatch.setattr(states.total_len, "gpu", states.total_len.gpu.long())
    made = model_runner.init_speculator(config, torch.device("cpu"), states)
    assert isinstance(made, NgramGPUSpeculator)
    (message,) = refusals(caplog)
    assert "torch.int64[4]" in message


@pytest.mark.parametrize("name", ["prefill_len", "max_seq_len"])
def test_states_that_lack_something_are_left_to_vllm(
    name: str, config: VllmConfig, runner: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(runner.runner.req_states, name)
    made = model_runner.init_speculator(config, torch.device("cpu"), runner.runner.req_states)
    assert isinstance(made, NgramGPUSpeculator)
    (message,) = refusals(caplog)
    assert name in message


def test_a_speculator_that_has_to_do_more_is_left_to_vllm(
    config: VllmConfig, runner: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(BaseSpeculator, "__abstractmethods__", frozenset({"propose", "observe"}))
    made = model_runner.init_speculator(config, torch.device("cpu"), runner.runner.req_states)
    assert isinstance(made, NgramGPUSpeculator)
    (message,) = refusals(caplog)
    assert "['observe']" in message
