"""What others were measured at, on the full recordings: fixed references, which don't depend on the machine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PEERS = Path(__file__).with_name("peers.json")


@dataclass(frozen=True)
class Peers:
    """`emitted`: tokens of each full recording, by workload. The others: budget -> peer -> workload -> figure."""

    emitted: Mapping[str, int]
    tokens_per_step: Mapping[str, Mapping[str, Mapping[str, float]]]
    accepted_per_node: Mapping[str, Mapping[str, Mapping[str, float]]]

    def best(self, workload: str, budget: int) -> tuple[str, float]:
        """The best peer's name, and its tokens per step."""
        figures = self.tokens_per_step[str(budget)]
        name = max(figures, key=lambda peer: figures[peer].get(workload, 0.0))
        return name, figures[name][workload]


@cache
def peers() -> Peers:
    return Peers(**json.loads(PEERS.read_text(encoding="utf-8")))
