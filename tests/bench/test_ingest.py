"""The ingest bench runs on the bundled sample and prints its figures."""

import re

import pytest

from bench import ingest
from bench.ingest import FULL_SIZE, Measured

NUMBER = r"\d[\d.,]*"


@pytest.mark.timeout(900)  # whatever loads has the lowest priority, on a machine that may do other things
def test_it_prints_a_row_for_every_way_to_send(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        ingest.main(["--tokens", "20000", "--text-bytes", "10000", "--repetitions", "1"])
    assert end.value.code == 0
    row = rf"^│ ([^│]+?) +│ +{NUMBER} +│ +{NUMBER} +│ +{NUMBER} +│ +{NUMBER} +│$"
    rows = re.findall(row, capsys.readouterr().out, re.MULTILINE)
    assert rows == [".npy over HTTP", ".npz over HTTP", "columns over gRPC", "NDJSON of ids", "NDJSON of text"]


def test_it_names_a_missed_target_of_packed_columns_of_the_full_size() -> None:
    slow = Measured("a", packed=True, tokens=FULL_SIZE, megabytes=40.0, seconds=5.0)
    assert slow.missed_targets() == ["a: 2,000,000 tokens/s, at least 3,000,000 wanted"]
    for other in ({"packed": False}, {"tokens": 1000}):
        row = {"packed": True, "tokens": FULL_SIZE, "megabytes": 40.0, "seconds": 5.0} | other
        assert Measured("a", **row).missed_targets() == []  # type: ignore[arg-type]
