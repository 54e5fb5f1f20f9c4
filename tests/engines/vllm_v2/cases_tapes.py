"""Windows of a draftd process are drafted from in vLLM's runner, and what its requests emit reaches draftd."""

import gc
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from transformers import LlamaConfig
from vllm.config import VllmConfig

from draftd.demo.server import Server, running_server
from tests.engines.vllm_v2.runner import Runner
from tests.faults.process import until

ROOT = Path(__file__).parents[3]
DOCUMENT, OUTPUT = list(range(1000, 1200)), list(range(2000, 2100))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with running_server() as server:
        monkeypatch.setenv("DRAFTD_ADAPTER_ENDPOINT", server.endpoint)
        monkeypatch.setenv("DRAFTD_ADAPTER_MODEL", "m")
        monkeypatch.setenv("DRAFTD_ADAPTER_DEADLINE", "5")
        yield server


def drafts_become(runner: Runner, request_id: str, draft: list[int]) -> None:
    """Steps without new tokens, as of a prompt in pieces, until the windows are there."""
    until(lambda: runner.step({request_id: []}) == [draft])


def test_windows_of_a_corpus_and_what_other_requests_emitted(server: Server, runner: Runner) -> None:
    server.post_corpus("default", "m", "c", [np.array(DOCUMENT, np.int32)])
    runner.add("a", [7, 1000, 1001])
    assert runner.step({"a": [1002]}) == [[1002] * 5]
    drafts_become(runner, "a", [1003, 1004, 1005, 1006, 1007])
    assert runner.step({"a": [1003, 1004, 1005]}) == [[1006, 1007, 1008, 1009, 1010]]

    for start in range(0, 60, 6):
        runner.step({"a": OUTPUT[start : start + 6]})
    runner.remove("a")
    runner.add("b", [8, *OUTPUT[20:23]])
    drafts_become(runner, "b", OUTPUT[23:28])

    runner.remove("b")  # preempted
    runner.add("b", [8, *OUTPUT[20:23]], known=[9, *DOCUMENT[50:53]])
    drafts_become(runner, "b", DOCUMENT[53:58])

    runner.remove("b")  # and its row is another's, who drafts from its own text alone until it has windows, too
    runner.add("c", [50, 51])
    assert runner.step({"c": [52]}) == [[52] * 5]
    runner.speculator._feeder.close()


def test_requests_that_vllm_warms_up_with_are_not_told(server: Server, runner: Runner) -> None:
    told = []
    runner.speculator._feeder.tell = told.append
    runner.add("_warmup_0_", [1, 2])
    runner.step({"_warmup_0_": [3]})
    runner.remove("_warmup_0_")
    runner.add("a", [1, 2])
    runner.step({"a": [3]})
    runner.step({"a": [4]})
    assert [[row.request_id for row in sighting.rows] for sighting in told] == [["a"], ["a"]]
    assert [sighting.rows[0].known_length for sighting in told] == [2, None]
    runner.speculator._feeder.close()


def test_a_request_that_comes_back_is_told_anew_and_has_another_opening(runner: Runner) -> None:
    told = []
    runner.speculator._feeder.tell = told.append
    runner.add("a", [1, 2])
    runner.step({"a": [3]})
    runner.remove("a")
    runner.add("a", [1, 2], known=[3])  # preempted
    runner.step({"a": [4]})
    runner.remove("a")
    runner.add("a", [1, 2, 3, 4, 5])  # more input for the same id
    runner.step({"a": [6]})
    runner.step({"a": [7]})
    rows = [sighting.rows[0] for sighting in told]
    assert [(row.opening, row.prompt_length, row.known_length) for row in rows] == [
        (1, 2, 2),
        (2, 2, 3),
        (3, 5, 5),
        (3, 5, None),
    ]
    assert runner.speculator._matcher.texts.openings[rows[0].row] == 3


def test_the_thread_ends_with_the_speculator(runner: Runner) -> None:
    thread = runner.speculator._feeder._thread
    runner.speculator = runner.runner.speculator = None
    gc.collect()
    assert not thread.is_alive()


def test_without_draftd_there_is_one_line_and_the_own_text(
    config: VllmConfig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_ENDPOINT", f"ipc://{tmp_path}/nobody.sock")
    runner = Runner(config)
    runner.add("a", [1, 2, 3, 1, 2])
    assert [runner.step({"a": [token]}) for token in (3, 1)] == [[[1, 2, 3, 1, 2]], [[2, 3, 1, 2, 3]]]
    runner.speculator._feeder.close()
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    (line,) = [message for message in warnings if "draftd" in message]
    assert "each request's own text alone" in line
    assert "no connection" in line


def test_with_lora_nothing_is_told(config: VllmConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of one adapter would reach another."""
    runner = Runner(config)
    monkeypatch.setattr(config, "lora_config", object())
    speculator = type(runner.speculator)(config, runner.speculator.device, runner.runner.req_states)
    assert speculator._feeder is None
    runner.speculator._feeder.close()


def test_ranks_draft_the_same_whatever_comes_when_at_each(tmp_path: Path) -> None:
    """Each receives windows of its own, at steps of its own: the first rank's count."""
    # SmolLM2's heads can't be shared by two ranks; of this one no weights are needed.
    LlamaConfig(architectures=["LlamaForCausalLM"], num_hidden_layers=1).save_pretrained(tmp_path / "model")
    subprocess.run([sys.executable, "-m", "tests.engines.vllm_v2.ranks", str(tmp_path)], cwd=ROOT, check=True)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert [first["feeds"], second["feeds"]] == [True, False]
    assert first["drafts"] == second["drafts"] == first["expected"]
    assert second["expected"] != first["expected"], "what the second would draft from what came to it"
