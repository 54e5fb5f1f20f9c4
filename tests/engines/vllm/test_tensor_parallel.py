"""Of several ranks one asks, and all propose the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faults.process import ServerProcess


def test_two_ranks_propose_the_same_drafts_of_which_one_asked_for(server: ServerProcess, tmp_path: Path) -> None:
    environment = {**os.environ, "DRAFTD_ADAPTER_ENDPOINT": server.zmq, "DRAFTD_ADAPTER_DEADLINE": "5"}
    with (tmp_path / "log").open("w") as log:
        ended = subprocess.run(
            [sys.executable, "-m", "tests.engines.vllm.tensor_parallel", str(tmp_path)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=280,
            check=False,
        )
    assert ended.returncode == 0, (tmp_path / "log").read_text()[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["outputs"] == result["expected"]
    assert result["asks"] == [True, False]
    first, second = result["proposed"]
    assert first == second
    assert len(first) < len(result["expected"][0]) - 1, "with what was accepted it takes fewer steps than tokens"
