import re
import subprocess
import sys
from pathlib import Path

from tests.faults.process import ServerProcess

EXAMPLE = Path(__file__).parents[3] / "examples/transformers_generate.py"


def accepted(model_dir: Path, endpoint: str) -> int:
    """Tokens, in a run of the example."""
    command = [sys.executable, str(EXAMPLE), str(model_dir), "The capital of France is", "--endpoint", endpoint]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "The capital of France is Paris" in said
    (count,) = re.findall(r"(\d+) of \d+ drafted tokens accepted", said)
    return int(count)


def test_the_example_is_drafted_the_second_time(model_dir: Path, server: ServerProcess) -> None:
    first = accepted(model_dir, server.zmq)
    assert accepted(model_dir, server.zmq) > first
