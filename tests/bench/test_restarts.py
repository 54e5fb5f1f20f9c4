"""The benches of restarts print their figures."""

import re

import pytest

from bench import kill_points, restart
from bench.kill_points import Inconsistent, Points, is_between
from bench.killable import Contents
from bench.restart import Times


def test_the_restart_bench_prints_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        restart.main(["--tokens", "20000", "--repetitions", "1"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    for row in ("until it serves", "of that, for corpora", "without corpora"):
        assert re.search(rf"│ {row} +│ +\d+\.\d\d │ +\d+\.\d\d │", printed)


def test_a_slow_restart_misses_the_target_of_the_full_size_only() -> None:
    assert Times(20_000_000, ready=[1.0, 2.5, 3.0]).missed_targets() == ["restart: 2.50 s, at most 2.0 wanted"]
    assert Times(19_000_000, ready=[2.5]).missed_targets() == []


def test_the_kill_bench_prints_a_row_for_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    kill_points.main(["--points", "2"])
    printed = capsys.readouterr().out
    for kind in ("load", "merge"):
        assert re.search(rf"│ {kind} +│ +1 │", printed)
    assert "nothing acknowledged was lost" in printed


@pytest.fixture
def points() -> Points:
    """Without a server; it had one corpus, and one output was found in the history."""
    points = object.__new__(Points)
    points._corpora = {"docs": {"a": (1,), "b": (2,)}}
    points._durable, points._finished = ["r1"], ["r2", "r3"]
    return points


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({"docs": {"a": (1,)}}, "corpus docs: 1 documents; before 2 documents, after 3 documents"),
        ({}, "corpus docs: absent"),
        ({"docs": {"a": (1,), "b": (2,)}}, "corpus docs"),
    ],
)
def test_a_lost_document_is_noticed(found: kill_points.Corpora, complaint: str, points: Points) -> None:
    after = {"docs": {"a": (1,), "b": (2,), "c": (3,)}}
    with pytest.raises(Inconsistent, match=complaint):
        points._check(Contents(dict(found)), after, acknowledged=True)


@pytest.mark.parametrize("labels", [["r2"], ["r1", "r3"], ["r1", "r2", "r3", "r4"], []])
def test_a_gap_in_the_history_is_noticed(labels: list[str], points: Points) -> None:
    with pytest.raises(Inconsistent, match="history"):
        points._check_history(labels)


def test_part_of_a_load_is_neither_before_nor_after() -> None:
    before, part, after = {"a": (1,)}, {"a": (1,), "b": (2,)}, {"a": (1,), "b": (2,), "c": (3,)}
    assert not is_between(part, before, after)
    assert is_between(part, after, before), "but of a deletion it may be"
    assert is_between(before, before, after)
