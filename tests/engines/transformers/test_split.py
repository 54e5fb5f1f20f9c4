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
from draftd.client import Draft
from draftd.client.zmq_channel import ZmqChannel
from tests.engines.transformers.conftest import NEW_TOKENS, Inputs
from tests.engines.transformers.prefill import NAMESPACE
from tests.faults.process import ServerProcess

LITTLE = 128  # bytes: all but the text that is new


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
    travelled: list[int] = []  # bytes of each message to draftd
    travelled_in_steps: list[int] = []  # bytes in each step
    send, step = ZmqChannel.send, EngineRequests.step

    def counted(channel: ZmqChannel, frames: list[bytes], timeout: float) -> bool:
        travelled.extend(map(len, frames))
        return send(channel, frames, timeout)

    def recorded(requests: EngineRequests, rows: list[EngineRow]) -> list[Draft]:
        before = sum(travelled)
        answer = step(requests, rows)
        travelled_in_steps.append(sum(travelled) - before)
        drafts.append(answer[0].tokens.tolist())
        return answer

    monkeypatch.setattr(ZmqChannel, "send", counted)
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
    text = 4 * len(committed)  # bytes
    assert text < travelled_in_steps[0] < text + LITTLE
    assert max(travelled_in_steps[1:]) < LITTLE
