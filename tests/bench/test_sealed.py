"""The benches of sealed text run on the bundled sample and print their figures."""

import re
from pathlib import Path

import pytest

from bench import sealed, sealed_history
from bench.sealed import Times
from draftd.demo.sample import SAMPLE, trace_files

NUMBER = r"\d[\d.,]*"


def test_the_sealed_bench_prints_lookups_and_drafts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        sealed.main(["--tokens", "20000", "--requests", "4", "--nodes", "4", "--batches", "6", "--preset", "dev"])
    assert end.value.code == 0
    rows = re.findall(rf"^│ (lookup|draft) +(?:│ +{NUMBER} +){{3}}│$", capsys.readouterr().out, re.MULTILINE)
    assert rows == ["lookup", "draft"]


def test_the_sealed_bench_names_missed_targets() -> None:
    assert Times(lookup=[81.0, 90.0, 70.0], draft=[249.0]).missed_targets() == [
        "p50 of a lookup: 81 µs, at most 80 wanted"
    ]


def test_sealing_is_compared_with_one_live_index(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for recording in sorted(trace_files(SAMPLE), key=lambda path: path.stat().st_size)[:2]:
        (tmp_path / recording.name).symlink_to(recording)
    with pytest.raises(SystemExit):
        sealed_history.main(["--traces", str(tmp_path), "--budget", "4", "--seal-tokens", "2000"])
    rows = re.findall(rf"^│ (\w+) +│ +({NUMBER}) │ +({NUMBER}) = ({NUMBER}) │$", capsys.readouterr().out, re.MULTILINE)
    assert len(rows) == 2
    for _, live, with_segments, share in rows:
        assert float(with_segments) / float(live) == pytest.approx(float(share), abs=2e-3)
