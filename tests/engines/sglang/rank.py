"""One rank of a tensor-parallel group of two: `python -m tests.engines.sglang.rank RANK DIRECTORY`.

Prints the trees of a few steps. Only rank 0 can reach draftd.
"""

import json
import sys
from pathlib import Path

import tests.engines.sglang.without_gpu  # noqa: F401  (before SGLang)
from tests.engines.sglang.engine import SglangEngine, request, start_up

rank, directory = int(sys.argv[1]), Path(sys.argv[2])
engine = SglangEngine(start_up(directory, rank=rank, ranks=2), overlap=True)
prepare = engine.worker._prepare_draft_tokens
trees = []


def recorded(batch):  # noqa: ANN001, ANN201
    tokens, mask = prepare(batch)
    trees.append([tokens.tolist(), mask.tolist()])
    return tokens, mask


engine.worker._prepare_draft_tokens = recorded
engine.admit(request("a", [1, 2, 3], 40), request("b", [2, 3, 4], 30))
engine.run()
print(json.dumps({"asks": engine.worker._requests is not None, "accepted": engine.accepted, "trees": trees}))
