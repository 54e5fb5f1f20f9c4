"""Two ranks of a tensor-parallel group of vLLM's: `python -m tests.engines.vllm_v2.ranks DIRECTORY` writes what each
drafted, and what it would have drafted alone, to DIRECTORY/RANK.json. They are forked once vLLM is imported."""

import json
import multiprocessing.connection
import random
import sys
from pathlib import Path

import numpy as np

from draftd.kernels.delivery import Arrival
from draftd.kernels.texts import Rule
from tests.engines.kernels.oracle import Row, drafted, padding
from tests.engines.vllm_v2.runner import MOST, Runner, configured, meet

RULE = Rule(2, 6, MOST, pad_with_last=True)
STEPS = 60


def run(rank: int, directory: Path) -> None:
    """Both are given the same tokens; windows come by the rank's own chance, at most every other step."""
    config = configured(directory / "model", prompt_lookup_min=2, prompt_lookup_max=6, ranks=2)
    meet(config, f"file://{directory / 'meeting'}", rank, ranks=2)
    runner = Runner(config)
    matcher = runner.speculator._matcher
    chance, of_rank = random.Random(0), random.Random(rank)
    rows: dict[str, Row] = {}
    drafts, expected = [], []
    for step in range(STEPS):
        if step % 20 == 0:
            for gone in list(rows)[:-1]:
                runner.remove(gone)
                del rows[gone]
            name = f"r{step}"
            runner.add(name, [chance.randrange(9) for _ in range(20)])
            rows[name] = Row(runner.texts[name])
            runner.step({name: []})  # so that the row is in its hands
        if of_rank.random() < 0.5:
            name = of_rank.choice(sorted(rows))
            seen = runner.speculator._rows._held[name].seen
            window = [*rows[name].text[-of_rank.randrange(3, 9) :], *(of_rank.randrange(100, 200) for _ in range(30))]
            rows[name].arrivals.append([window])
            assert matcher.post([Arrival(seen.row, seen.opening, [np.array(window, np.int32)])])
        batch = chance.sample(sorted(rows), len(rows))
        drafts.append(runner.step({name: [chance.randrange(9)] * chance.randrange(2) for name in batch}))
        drafted_alone = [(drafted(rows[name], RULE), rows[name]) for name in batch]
        expected.append([draft + [padding(row, RULE)] * (MOST - len(draft)) for draft, row in drafted_alone])
    feeds = runner.speculator._feeder is not None
    (directory / f"{rank}.json").write_text(json.dumps({"feeds": feeds, "drafts": drafts, "expected": expected}))


def main(directory: Path) -> int:
    """0 if both ended well. One that lost the other would wait for it for ever."""
    forking = multiprocessing.get_context("fork")
    ranks = [forking.Process(target=run, args=(rank, directory), daemon=True) for rank in range(2)]
    for rank in ranks:
        rank.start()
    multiprocessing.connection.wait([rank.sentinel for rank in ranks])
    for rank in ranks:
        rank.join(60)
    return int(any(rank.exitcode != 0 for rank in ranks))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
