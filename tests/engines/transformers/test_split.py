"""One process prefills, another decodes: it opens from the committed text, and drafts are as if it had prefilled."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from draftd.adapters.requests import EngineRequests, EngineRow
from draftd.adapters.transformers import DraftdDecoding
from draftd.client import Client, Draft
from tests.engines.transformers.conftest import NEW_TOKENS, Inputs
from tests.engines.transformers.prefill import NAMESPACE
from tests.faults.process import ServerProcess


def test_the_decode_process_goes_on_from_the_committed_text(
    model: PreTrainedModel,
    server: ServerProcess,
    inputs: Callable[[int], Inputs],
    undrafted: Callable[[int], Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt = inputs(1)["input_ids"][0].tolist()
    (tmp_path / "prompt").write_text(json.dumps(prompt))
    command = [sys.executable, "-m", "tests.engines.transformers.prefill", server.zmq, str(tmp_path / "prompt")]
    prefilled = subprocess.run(command, capture_output=True, text=True, check=True)
    undisturbed: list[int] = json.loads(prefilled.stdout)
    assert undisturbed

    drafts: list[list[int]] = []
    step = EngineRequests.step

    def recorded(requests: EngineRequests, rows: list[EngineRow]) -> list[Draft]:
        answer = step(requests, rows)
        drafts.append(answer[0].tokens.tolist())
        return answer

    monkeypatch.setattr(EngineRequests, "step", recorded)
    committed = json.loads((tmp_path / "prompt.committed").read_text())
    cache = DynamicCache(torch.load(tmp_path / "prompt.cache"))
    with DraftdDecoding(model, endpoint=server.zmq, deadline=5.0, model=NAMESPACE.model) as decoding:
        generated = model.generate(
            torch.tensor([committed]),
            past_key_values=cache,
            max_new_tokens=NEW_TOKENS - 1,
            do_sample=False,
            eos_token_id=None,
            custom_generate=decoding,
        )
    assert torch.equal(generated, undrafted(1))
    assert drafts[0] == undisturbed


def test_what_travels_is_the_text(server: ServerProcess, prompts: list[list[int]]) -> None:
    """4 bytes a token, and what is stated of the request: some 50 bytes."""
    with Client(server.zmq, NAMESPACE, deadline=5.0) as client:
        request = client.open("split", prompts[0], hold=True, shape="chain")
        client.step({request: [7]})
        tokens = len(prompts[0]) + 1
        assert 4 * tokens < request.mirror.sync_bytes < 4 * tokens + 64
