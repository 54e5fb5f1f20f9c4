"""One rank of a group: `python -m tests.engines.sources.rank RANK MEETING` writes what it drafted, and what it would
have drafted alone."""

import json
import sys

import torch

from tests.engines.sources.decoding import decode

rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
print(json.dumps(decode(seed=rank, group=torch.distributed.group.WORLD)))
torch.distributed.destroy_process_group()
