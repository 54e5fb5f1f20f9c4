import os
import re
import subprocess
import sys
from pathlib import Path

from tests.faults.process import ServerProcess

EXAMPLE = Path(__file__).parents[3] / "examples/vllm_generate.py"
TEXTS = ["The capital of France is", "one two three four one two three four one two"]


def test_the_example_is_drafted(model_dir: Path, server: ServerProcess) -> None:
    settings = {"DRAFTD_ADAPTER_ENDPOINT": server.zmq, "DRAFTD_ADAPTER_DEADLINE": "5"}
    command = [sys.executable, str(EXAMPLE), "--enforce-eager", str(model_dir), *TEXTS]
    example = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings})
    assert example.returncode == 0, example.stderr
    assert "The capital of France is Paris" in example.stdout
    (accepted,) = re.findall(r"(\d+) of \d+ drafted tokens accepted", example.stdout)
    assert int(accepted) > 0
