"""The bench of times, beside a stand-in for ArcticInference: the real one is no dependency of the tests."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import arctic
from bench.arctic import Times, windows
from draftd.replay.sessions import in_process

NUMBER = r"\d[\d.,]*"
SMALL = ["--requests", "4", "--context", "300", "--steps", "5", "--shared", "5000"]
STAND_IN = """
class SuffixDecodingCache:
    def __init__(self):
        self.texts = {}

    def start_request(self, request, tokens):
        self.texts[request] = list(tokens)

    def add_active_response(self, request, tokens):
        self.texts[request] += list(tokens)

    def speculate(self, request, context, max_spec_tokens):
        assert self.texts[request][-len(context):] == list(context) and max_spec_tokens == 32
"""


def test_draftd_alone_is_measured_without_another(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        arctic.main(SMALL)
    printed = capsys.readouterr().out
    assert end.value.code == 0
    assert re.search(rf"draftd, batch of 4, .*│ +{NUMBER} │ +{NUMBER} │", printed)
    assert re.search(rf"draftd, one request, 5,000 .*│ +{NUMBER} │ +{NUMBER} │", printed)
    assert "ArcticInference" not in printed


def test_the_other_is_told_the_same_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "arctic_inference"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "suffix_decoding.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        arctic.main([*SMALL, "--python", sys.executable])
    printed = capsys.readouterr().out
    assert end.value.code == 0
    assert re.search(rf"ArcticInference, batch of 4, .*│ +{NUMBER} │ +{NUMBER} │", printed)
    assert re.search(rf"{NUMBER}x of ArcticInference", printed)


def test_a_python_without_it_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="cannot run ArcticInference"):
        arctic.main([*SMALL, "--python", sys.executable])


def test_a_batch_goes_on_as_recorded() -> None:
    text = windows([np.arange(1000, dtype=np.int32) % 50], 3, 300)
    with in_process("w", corpora={}) as client:
        batch = arctic.Batch(client, text, 200)
        first, _ = batch.step()
        second, _ = batch.step()
    assert first == [1, 1, 1]
    assert second == [17, 17, 17]  # the text repeats itself: all of a chain of 16, and the bonus token


def test_missed_targets_are_named() -> None:
    slow = Times(batch=[700.0], request=[16.0], without_learning=[11.0], drafts=[1000.0], updates=[1.0])
    assert slow.missed_targets() == [
        "batch: 700 µs, at most 600 wanted",
        "batch: 0.70x of ArcticInference, 0.5x wanted",
        "one request: 11.0 µs, at most 10 wanted",
        "learning: 5.0 µs a step, at most 3 wanted",
    ]
    assert Times(batch=[500.0], request=[12.0], without_learning=[9.0], drafts=[1000.0]).missed_targets() == []


def test_learning_is_what_a_step_takes_longer_but_for_its_slowest_tenth() -> None:
    times = Times(request=[10.0] * 9 + [500.0], without_learning=[8.0] * 9 + [90.0])
    assert times.learning == pytest.approx(2.0)
