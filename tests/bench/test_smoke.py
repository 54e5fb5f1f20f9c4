"""Every bench runs on the bundled sample and prints its figures. What they should be is for quiet machines."""

import re
from pathlib import Path

import pytest

from bench import index, make_sample, segment, step, turns
from bench.index import Cost, Measured
from bench.step import Figures, Times
from draftd.demo.sample import SAMPLE, SAMPLE_CORPUS

NUMBER = r"\d[\d.,]*"


def test_the_index_bench_prints_a_row_for_every_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        index.main(["--tokens", "2000", "--repetitions", "1"])
    assert end.value.code == 0
    rows = re.findall(rf"^│ ([^│]+?) +│ +(2,000)(?: │ +{NUMBER}){{7}} │$", capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in rows] == ["text: traces", "aaaa", "abab", "Fibonacci", "random binary"]


def test_the_index_bench_takes_a_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        index.main(["--tokens", "2000", "--repetitions", "1", "--corpus", str(SAMPLE_CORPUS)])
    assert end.value.code == 0
    assert "text: gsm8k_train.npz" in capsys.readouterr().out


def measured(*, is_text: bool = True, tokens: int = index.FULL_SIZE) -> Measured:
    """An index that misses every target."""
    cost = Cost(tokens=tokens, seconds=tokens / 1e6, bytes=41 * tokens, states=tokens, edges=tokens)
    return Measured("a", is_text, cost, doubling=4.0, cached_doubling=3.0)


def test_the_index_bench_names_missed_targets() -> None:
    of_growth = [
        "a: 12,000 tokens take 3.00 halves, below 2.5 wanted",
        "a: 1,000,000 tokens take 4.00 halves, below 3.5 wanted",
    ]
    assert measured().missed_targets() == [
        "a: 41.0 bytes/token, at most 40 wanted",
        "a: 1,000,000 tokens/s, at least 2,000,000 wanted",
        *of_growth,
    ]
    assert measured(is_text=False).missed_targets() == of_growth
    assert measured(tokens=2000).missed_targets() == []


def test_the_index_bench_fails_for_a_missed_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "measure", lambda *_, **__: measured())
    with pytest.raises(SystemExit) as end:
        index.main(["--tokens", "2000"])
    assert end.value.code == 1


def test_the_segment_bench_prints_a_row_for_every_size(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        segment.main(["--tokens", "1000", "2000", "--repetitions", "1"])
    assert end.value.code == 0
    rows = re.findall(rf"^│ +({NUMBER})(?: │ +{NUMBER}){{5}} │$", capsys.readouterr().out, re.MULTILINE)
    assert rows == ["1,000", "2,000"]


def sealed(tokens: int) -> segment.Measured:
    """A segment that misses every target."""
    return segment.Measured(tokens, 6 * tokens, tokens / 5e6, tokens / 1e6, 15 * tokens, open_seconds=1.0)


def test_the_segment_bench_names_missed_targets_of_full_sizes() -> None:
    assert sealed(10_000_000).missed_targets() == [
        "10,000,000 tokens: 6.00 bytes/token, at most 5.8 wanted",
        "10,000,000 tokens: 5,000,000 tokens/s, at least 6,000,000 wanted",
        "10,000,000 tokens: 15.0 bytes/token to build, at most 14 wanted",
    ]
    assert sealed(1_000_000).missed_targets() == []


def test_the_step_bench_compares_core_both_ways_and_echo(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        step.main(["--requests", "4", "--nodes", "4", "--shared", "5000", "--steps", "5"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    for name in ("in the core", "ZMQ", "shared memory", "raw echo over ZMQ"):
        assert re.search(rf"│ {name} +│ +{NUMBER} │ +{NUMBER} │", printed)
    assert re.search(rf"shared\s+memory\s+-?{NUMBER}\s+echoes", printed)


def test_the_step_bench_fails_for_missed_targets_of_the_full_batch_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = Times(core=[900.0], round_trip=[1800.0], nodes=[1])
    slow = Figures(zmq=times, ring=times, echo=[100.0], bytes_sent=[1], bytes_received=[1])
    monkeypatch.setattr(step, "measure", lambda *_: slow)
    for nodes, status in (("16", 1), ("4", 0)):
        with pytest.raises(SystemExit) as end:
            step.main(["--nodes", nodes])
        assert end.value.code == status
    printed = capsys.readouterr().out
    assert printed.count("p50 in the core: 900 µs, at most 800 wanted") == 1
    assert printed.count("ZMQ: 1.80x the core and an echo, at most 1.6x wanted") == 1
    assert printed.count("shared memory beyond the core: 9.00 echoes, at most 0.6 wanted") == 1


def test_the_sample_is_what_the_script_makes_of_the_full_recordings(traces: Path, tmp_path: Path) -> None:
    for workload, sessions in make_sample.SESSIONS.items():
        recording = traces / f"{workload}.jsonl.gz"
        kept = b"".join(make_sample.first_sessions(recording, sessions))
        bundled = b"".join(make_sample.first_sessions(SAMPLE / recording.name, None))
        assert kept == bundled, workload


def test_the_turns_bench_says_what_is_not_indexed_again(capsys: pytest.CaptureFixture[str]) -> None:
    turns.main(["--traces", str(SAMPLE)])
    rows = re.findall(rf"^│ (\w+) +(?:│ {NUMBER} +){{3}}│ ({NUMBER})% ", capsys.readouterr().out, re.MULTILINE)
    parts = {name: float(part) for name, part in rows}
    assert parts["agent_tau_airline"] < 50 <= max(parts.values())
