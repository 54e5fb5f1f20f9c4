"""The adaptive schedule decides as SGLang's own, for the same file and the same batches."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams

from draftd.pacing.schedule import Schedule
from draftd.pacing.schedule_table import read_table, shipped_table

STARTS = range(60)


def test_the_default_table_is_sglangs() -> None:
    assert_same(random.Random(0), shipped_table(), None, most=15 + 3 * 5)


@pytest.mark.parametrize("start", STARTS)
def test_tables_without_off(start: int, tmp_path: Path) -> None:
    chance = random.Random(start)
    file = written(tmp_path, table(chance, least=1))
    assert_same(chance, read_table(file), file, most=600)


@pytest.mark.parametrize("start", STARTS)
def test_tables_with_off_until_a_slot_may_have_flapped(start: int, tmp_path: Path) -> None:
    """Off, an attempt, off again and a second attempt take at least four decisions. Until then nothing is added."""
    chance = random.Random(start)
    content = table(chance, least=0) | {"update_interval": 5, "warmup_batches": 10}
    for slot in content.values():
        if isinstance(slot, dict):
            slot.pop("update_interval", None)
            slot.pop("warmup_batches", None)
    file = written(tmp_path, content)
    assert_same(chance, read_table(file), file, most=10 + 4 * 5)


def assert_same(chance: random.Random, slots: Any, file: Path | None, most: int) -> None:
    """Both see the same batches and are asked about every size after each."""
    initial_steps, graphs = chance.randrange(8), sorted(chance.sample(range(1, 80), chance.randrange(8)))
    ours = Schedule(slots, initial_steps, graphs)
    theirs = AdaptiveSpeculativeParams(initial_steps, None if file is None else str(file))
    theirs.set_cuda_graph_bs(graphs)
    likely = chance.random()
    for _ in range(most):
        size = chance.choice([1, 3, 8, 20, 33, 64, 100])
        assert ours.nodes(size) == theirs.get_steps_for_batch(size)
        accepted = [sum(chance.random() < likely for _ in range(ours.nodes(size))) for _ in range(size)]
        ours.observe(size, accepted)
        theirs.on_verify_complete(accepted, size)
        for other in range(1, 101):
            assert ours.nodes(other) == theirs.get_steps_for_batch(other)
        if chance.random() < 0.05:
            likely = chance.random()


def table(chance: random.Random, least: int) -> dict[str, Any]:
    content: dict[str, Any] = options(chance)
    for size in chance.sample([1, 4, 8, 16, 32, 64], chance.randint(1, 4)):
        steps = chance.sample(range(least, 9), chance.randint(1, 5))
        content[str(size)] = options(chance) | {"candidate_steps": steps}
    return content


def options(chance: random.Random) -> dict[str, Any]:
    every = {
        "ema_alpha": chance.choice([0.05, 0.2, 0.5, 1.0]),
        "update_interval": chance.randint(1, 7),
        "warmup_batches": chance.randint(0, 12),
        "up_hysteresis": chance.choice([-0.5, 0.0, 0.25]),
        "down_hysteresis": chance.choice([-0.25, 0.0, 0.3]),
        "ceiling_coeff": chance.choice([0, 0.5, 1, 1.5]),
    }
    return {name: value for name, value in every.items() if chance.random() < 0.4}


def written(folder: Path, content: dict[str, Any]) -> Path:
    file = folder / "schedule.json"
    file.write_text(json.dumps(content))
    return file
