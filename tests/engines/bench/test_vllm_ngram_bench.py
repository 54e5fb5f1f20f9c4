"""vLLM's n-gram lookup beside draftd, tiny: the real proposer, a real server."""

import json
import sys
from pathlib import Path

import pytest

from bench import vllm_ngram


def test_both_draft_for_the_same_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "all.json"
    small = ["--requests", "2", "--context", "512", "--steps", "5", "--json", str(written)]
    with pytest.raises(SystemExit) as end:
        vllm_ngram.main([*small, "--python", sys.executable])
    assert end.value.code == 0, capsys.readouterr().out
    figures = json.loads(written.read_text())
    assert figures["ratio"] == pytest.approx(figures["micros_p50"]["ngram"] / figures["micros_p50"]["draftd"])
    assert min(figures["micros_p50"].values()) > 0
