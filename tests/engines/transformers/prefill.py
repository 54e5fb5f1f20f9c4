"""The process that prefills, where prefill and decode are split.

python -m tests.engines.transformers.prefill ENDPOINT FILE reads the prompt from FILE, a JSON list of token ids, and
leaves beside it what a decode process needs: FILE.committed, the prompt and the first token, and FILE.cache, the keys
and values of the prompt. To draftd it is a verifier that aborts. Prints the draft that it would have gone on with.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from draftd.client import Client, Namespace
from tests.engines.model import model_directory

NAMESPACE = Namespace(model="split")  # of the decode process, too


def main(endpoint: str, file: Path) -> None:
    prompt = json.loads(file.read_text())
    model = AutoModelForCausalLM.from_pretrained(model_directory(), dtype=torch.float32)
    with torch.no_grad():
        outputs = model(torch.tensor([prompt]))
    first = int(outputs.logits[0, -1].argmax())
    layers = [(layer.keys, layer.values) for layer in outputs.past_key_values.layers]
    torch.save(layers, file.with_suffix(".cache"))
    file.with_suffix(".committed").write_text(json.dumps([*prompt, first]))
    with Client(endpoint, NAMESPACE, verifier="prefill", deadline=5.0) as client:
        request = client.open("split", prompt, shape="chain", wait=True)
        print(request.step([first], 8).tokens.tolist())
        request.close("aborted")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
