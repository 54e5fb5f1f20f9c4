"""The open-loop load generator: what its latencies count, and that it runs."""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import load, neighbours, vllm_ngram
from bench.latency_drawing import draw
from bench.load import Load, Measured
from bench.load_engine import Phase, Taken
from bench.open_loop import Latencies, due_times, run
from bench.text import trace_documents
from draftd.demo.sample import SAMPLE


class FakeClock:
    """Whose time passes only by sleeping and by what is done."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep_until(self, moment: float) -> None:
        self.time = max(self.time, moment)


def latencies_of(seconds_of_steps: list[float], after_step: float = 0.0) -> tuple[Latencies, Latencies]:
    """Latencies and waits of steps that are due every 10 ms and take so long."""
    clock, latencies, waits = FakeClock(), Latencies(), Latencies()
    durations = iter(seconds_of_steps)

    def spend(seconds: float) -> None:
        clock.time += seconds

    due = [0.01 * step for step in range(len(seconds_of_steps))]
    run(due, lambda: spend(next(durations)), lambda: spend(after_step), clock, latencies, waits)
    return latencies, waits


def test_steps_in_time_have_the_latency_that_they_take() -> None:
    latencies, waits = latencies_of([0.001, 0.002, 0.003])
    took = [latencies.percentile(percent) for percent in (1, 50, 100)]
    assert took == pytest.approx([1000, 2000, 3000], rel=0.001)
    assert waits.percentile(100) == 1  # nothing is recorded as the least that can be


def test_one_stall_is_in_the_latency_of_every_step_that_was_due_meanwhile() -> None:
    latencies, waits = latencies_of([0.001] * 50 + [0.200] + [0.001] * 49)
    assert latencies.percentile(50) == pytest.approx(1000, rel=0.01)
    assert latencies.percentile(95) > 100_000  # of the steps alone it would be 1 ms
    assert latencies.percentile(100) == pytest.approx(200_000, rel=0.01)
    assert waits.percentile(100) == pytest.approx(191_000, rel=0.01)
    assert latencies.count == waits.count == 100


def test_an_engine_that_is_busy_itself_waits_too() -> None:
    latencies, waits = latencies_of([0.001, 0.001], after_step=0.015)
    assert waits.percentile(100) == pytest.approx(6000, rel=0.01)
    assert latencies.percentile(100) == pytest.approx(7000, rel=0.01)


def test_a_schedule_is_the_same_each_time_and_keeps_its_rate() -> None:
    due = due_times(rate=50.0, seconds=20.0, seed=3)
    assert np.array_equal(due, due_times(50.0, 20.0, 3))
    assert not np.array_equal(due, due_times(50.0, 20.0, 4))
    assert len(due) == 1000
    assert due[-1] == pytest.approx(20.0, rel=0.01)
    periods = np.diff(due, prepend=0.0)
    assert 0.018 <= periods.min() < periods.max() <= 0.022


def test_latencies_travel_between_processes_and_add_up() -> None:
    here, there = Latencies(), Latencies()
    here.add(0.001)
    there.add(0.5)
    there.add(90.0)
    here.merge(pickle.loads(pickle.dumps(there)))
    assert here.count == 3
    assert here.percentile(50) == pytest.approx(500_000, rel=0.001)
    assert here.percentile(100) == pytest.approx(60_000_000, rel=0.001)  # the longest that counts


def test_a_run_has_a_row_for_every_combination_and_a_drawing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing, written = tmp_path / "latencies.svg", tmp_path / "all.json"
    small = ["--engines", "1", "2", "--batch", "2", "--context", "64", "--rate", "20", "--seconds", "0.5"]
    load.main([*small, "--svg", str(drawing), "--json", str(written)])
    names = ["1 engine x 2 requests x 64 tokens", "2 engines x 2 requests x 64 tokens"]
    figures = json.loads(written.read_text())
    assert [*figures] == names
    assert [figures[name]["steps"] for name in names] == [10, 20]
    assert [figures[name]["unanswered"] for name in names] == [0, 0]
    assert all(figures[name]["tokens_per_row"] >= 1.0 for name in names)
    printed, drawn = capsys.readouterr().out, drawing.read_text()
    for name in names:
        assert name in printed
        assert name in drawn


def test_the_same_latencies_are_the_same_drawing(tmp_path: Path) -> None:
    latencies, _ = latencies_of([0.001] * 9 + [0.05])
    for name in ("a.svg", "b.svg"):
        draw({"steps": latencies}, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def taking(milliseconds: float) -> Measured:
    latencies, _ = latencies_of([milliseconds / 1000])
    return Measured(Taken(latencies=latencies, rows=1), seconds=1.0)


@pytest.mark.parametrize(("together", "with_long", "status"), [(5.0, 5.0, 0), (9.0, 5.0, 1), (5.0, 6.0, 1)])
def test_neighbours_that_are_felt_too_much_end_with_status_1(
    together: float,
    with_long: float,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    engines = {neighbours.ALONE: taking(4.0), neighbours.TOGETHER: taking(together)}
    prompts = {neighbours.PLAIN: taking(4.5), neighbours.LONG_PROMPTS: taking(with_long)}
    monkeypatch.setattr(neighbours, "beside_engines", lambda *_: engines)
    monkeypatch.setattr(neighbours, "beside_long_prompts", lambda *_: prompts)
    with pytest.raises(SystemExit) as end:
        neighbours.main([])
    assert end.value.code == status
    assert capsys.readouterr().out.count("MISSED") == status


def test_neighbours_take_turns_at_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small, but real: four engines, and prompts that are long beside the others."""
    monkeypatch.setattr(neighbours, "ENGINES", Load(engines=2, batch=2, context=64, rate=20.0, nodes=4))
    monkeypatch.setattr(neighbours, "BATCH", Load(engines=1, batch=3, context=64, rate=20.0, nodes=4))
    monkeypatch.setattr(neighbours, "LONG_CONTEXT", 4096)
    documents = trace_documents(SAMPLE)
    engines = neighbours.beside_engines(documents, 2, Phase(0.5, 20.0))
    assert [measured.taken.latencies.count for measured in engines.values()] == [20, 40]
    plain, with_long = neighbours.beside_long_prompts(documents, 1, Phase(1.5, 20.0)).values()
    assert plain.taken.rows == 30 * 3
    assert with_long.taken.rows > plain.taken.rows  # the long ones take part
    assert plain.taken.unanswered == with_long.taken.unanswered == 0


@pytest.mark.parametrize(("ngram", "status"), [(400.0, 0), (200.0, 1)])
def test_a_step_that_is_no_faster_than_an_n_gram_lookup_ends_with_status_1(
    ngram: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = vllm_ngram.Times(draftd=[200.0], core=[100.0], ngram=[ngram], draftd_nodes=[9], ngram_nodes=[5])
    monkeypatch.setattr(vllm_ngram, "measure", lambda *_: times)
    with pytest.raises(SystemExit) as end:
        vllm_ngram.main(["--python", sys.executable])  # the engines' environment may not be there
    assert end.value.code == status
    assert f"draftd is {ngram / 200:.2f}x as fast" in capsys.readouterr().out
