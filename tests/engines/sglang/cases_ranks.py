"""Tensor parallelism: two processes of one group, over SGLang's own group of ranks."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faults.process import ServerProcess


def test_one_rank_asks_and_all_have_its_trees(server: ServerProcess, tmp_path: Path) -> None:
    endpoints = [server.zmq, "ipc:///nowhere/draftd.sock"]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.engines.sglang.rank", str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"DRAFTD_ADAPTER_ENDPOINT": endpoint, "DRAFTD_ADAPTER_DEADLINE": "5"},
        )
        for rank, endpoint in enumerate(endpoints)
    ]
    first, other = (json.loads(rank.communicate(timeout=100)[0].splitlines()[-1]) for rank in ranks)
    assert (first["asks"], other["asks"]) == (True, False)
    assert first["trees"] == other["trees"]
    assert first["accepted"] == other["accepted"] > len(first["trees"])
