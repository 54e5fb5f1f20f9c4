"""The simulated engine: what its steps cost, what it runs, and what the bench demands of drafts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import roofline
from bench.roofline import PROFILED, SCHEDULE, TRUE_COSTS, Measured, Row, Way, fixed_counts, true_costs
from bench.simulated_engine import Drafting, Simulated, graph_sizes, mixed_traffic, padded, step_milliseconds
from draftd.client import Draft, Request
from draftd.client.client import ChannelClient
from draftd.demo.sample import SAMPLE, trace_files
from draftd.replay.traces import RecordedRequest, read_trace, workload_name


@pytest.mark.parametrize(
    ("tokens", "size"),
    [(1, 1), (2, 2), (3, 4), (5, 8), (33, 64), (64, 64), (65, 96), (96, 96), (97, 128), (288, 288), (289, 320)],
)
def test_steps_are_padded_to_the_next_graph(tokens: int, size: int) -> None:
    assert padded(tokens) == size


def test_a_step_costs_the_same_up_to_the_ridge_and_in_proportion_beyond() -> None:
    assert step_milliseconds(1) == step_milliseconds(288) == 4.48
    assert step_milliseconds(289) == step_milliseconds(320) == pytest.approx(4.48 * 320 / 295)
    assert step_milliseconds(640) == pytest.approx(2 * step_milliseconds(320))


def test_the_cost_table_says_what_steps_cost() -> None:
    sizes = graph_sizes(300)
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320]
    table = true_costs()
    for tokens in (1, 3, 64, 65, 288, 289, 1000):
        first = next(place for place, size in enumerate(table.tokens) if size >= tokens)
        assert table.micros[first] == pytest.approx(1000 * step_milliseconds(tokens))


def test_speed_up_is_against_one_token_a_step_of_each_request() -> None:
    assert Simulated(batch=64, steps=2, emitted=192, milliseconds=2 * 4.48).speed_up == pytest.approx(1.5)
    assert Simulated(batch=512, steps=1, emitted=512, milliseconds=step_milliseconds(512)).speed_up == pytest.approx(1)


def test_fixed_counts_have_the_one_that_fills_a_plain_step() -> None:
    assert {3, 35} <= {*fixed_counts(8), *fixed_counts(64)}
    assert fixed_counts(256) == [1]
    assert fixed_counts(128) == [1, 2, 3, 4]
    assert max(fixed_counts(1)) == 64


def test_traffic_is_of_all_recordings_in_turn() -> None:
    traffic = mixed_traffic(SAMPLE, rounds=2)
    files = trace_files(SAMPLE)
    ids = {request.id: workload_name(path) for path in files for request in read_trace(path)}
    first_round = [ids[request.id] for request in traffic[: len(files)]]
    assert first_round == [workload_name(path) for path in files]
    assert len(traffic) == 2 * len(files)


class WatchedClient(ChannelClient):
    """Notes the requests of each step."""

    def step(self, commits: Mapping[Request, Sequence[int]], *arguments: Any, **named: Any) -> dict[Request, Draft]:
        self.steps.append([request.request_id.partition(":")[2] for request in commits])
        return super().step(commits, *arguments, **named)


@pytest.fixture
def agents(tmp_path: Path) -> list[RecordedRequest]:
    """Sessions of agents, beside requests that have nothing to do with each other."""
    for name in ("agent_tau_airline", "specbench_math"):
        (tmp_path / f"{name}.jsonl.gz").symlink_to(SAMPLE / f"{name}.jsonl.gz")
    return mixed_traffic(tmp_path, rounds=12)


def test_the_batch_is_kept_full_with_one_request_of_a_session_at_most(
    agents: list[RecordedRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[list[str]] = []
    monkeypatch.setattr(WatchedClient, "steps", steps, raising=False)
    monkeypatch.setattr(roofline, "ChannelClient", WatchedClient)
    with roofline.simulated_engine(agents, Way("fixed 4", Drafting(4))) as engine:
        done = engine.run(batch=4, drafting=Drafting(4))
    group_of = {request.id: request.group for request in agents}
    groups = [Counter(group_of[request] for request in step) for step in steps]
    assert done.steps == len(steps) > 20
    assert {len(step) for step in steps} == {4}
    assert max(Counter(group_of.values()).values()) > 4  # there are sessions of several turns
    assert max(max(of_step.values()) for of_step in groups) == 1


def test_a_simulation_is_the_same_each_time(agents: list[RecordedRequest]) -> None:
    outcomes = []
    for way in [Way("fixed 4", Drafting(4)), *roofline.ways(batch=4, noise=0.1)[-3:]]:
        for _ in range(2):
            with roofline.simulated_engine(agents, way) as engine:
                done = engine.run(batch=4, drafting=way.drafting)
            outcomes.append((way.name, done.steps, done.emitted, done.nodes, done.milliseconds))
    assert outcomes[::2] == outcomes[1::2]


def measured(way: str, speed_up: float, milliseconds: float = 1.0, nodes: int = 64) -> Measured:
    return Measured(128, way, nodes, 100, 1000, 9.5, speed_up, milliseconds)


def test_a_row_names_what_it_misses() -> None:
    none_helps = [measured("fixed 1", 0.9, nodes=1), measured(PROFILED, 1.5), measured(SCHEDULE, 1.0)]
    good = Row.of(128, [*none_helps, measured(TRUE_COSTS, 1.5)])
    assert (good.best_fixed, good.missed_targets()) == (None, [])
    bad = Row.of(
        128,
        [
            measured("fixed 1", 1.30, nodes=1),
            measured("fixed 2", 1.35, nodes=2),
            measured(TRUE_COSTS, 1.38, milliseconds=1.7),
            measured(PROFILED, 1.30),
            measured(SCHEDULE, 1.0),
        ],
    )
    assert bad.best_fixed is not None
    assert bad.best_fixed.nodes == 2
    assert bad.missed_targets() == [
        "batch 128: 1.380x of no drafts, at least 1.4x wanted",
        "batch 128: 1.022x of the best fixed count, at least 1.08x wanted",
        "batch 128: the drafter takes 1.70 ms of a step, at most 1.5 wanted",
        "batch 128: profiled costs give 0.942x of the true ones, 0.98x wanted",
    ]


def test_a_run_prints_a_row_for_every_batch(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        roofline.main(["--batch", "2", "--rounds", "1"])
    assert end.value.code == 0  # the sample has no targets
    printed = capsys.readouterr().out
    assert "against no drafts" in printed
    (row,) = (line for line in printed.splitlines() if line.startswith("│"))
    assert np.count_nonzero([cell.strip().endswith("x") for cell in row.split("│")]) >= 4
