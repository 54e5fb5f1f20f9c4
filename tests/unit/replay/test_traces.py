"""Recordings are read whole or refused with file and line."""

import gzip
import json
from pathlib import Path

import pytest

from draftd.replay import run
from draftd.replay.traces import TraceError, read_trace, workload_name

GOOD = {"id": "r1", "group": "g", "prompt_token_ids": [1, 5], "output_token_ids": [7, 2]}


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def test_requests_come_in_file_order_with_their_tokens(tmp_path: Path) -> None:
    requests = list(read_trace(write(tmp_path / "a.jsonl", GOOD, {**GOOD, "id": "r2", "output_token_ids": [2]})))
    assert [(r.id, r.prompt.tolist(), r.output.tolist()) for r in requests] == [
        ("r1", [1, 5], [7, 2]),
        ("r2", [1, 5], [2]),
    ]


def test_blank_lines_are_no_requests_and_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "\n", GOOD, "  \n", GOOD, "\r\n")
    assert len(list(read_trace(path))) == 2
    with pytest.raises(TraceError, match=r"a\.jsonl:4: not JSON"):
        list(read_trace(write(path, "\n", GOOD, "\n", "x\n")))


def test_what_a_recording_may_hold_can_be_replayed(tmp_path: Path) -> None:
    """The limits of the reader are those of a drafter."""
    longest = write(
        tmp_path / "a.jsonl", {"id": "é" * 128, "prompt_token_ids": [2**31 - 2], "output_token_ids": [0, 2]}
    )
    (result,) = run([longest])
    assert result.steps == 1


def test_gzipped_and_plain_files_read_the_same(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.jsonl", GOOD)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert [r.output.tolist() for r in read_trace(packed)] == [r.output.tolist() for r in read_trace(plain)]
    assert workload_name(plain) == workload_name(packed) == "a"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{not json}\n", "not JSON"),
        ([1, 2], "not a JSON object"),
        ({**GOOD, "id": ""}, "`id`"),
        ({**GOOD, "output_token_ids": []}, "`output_token_ids` is empty"),
        ({**GOOD, "output_token_ids": [3, -1]}, "`output_token_ids`"),
        ({**GOOD, "id": "a" * 257}, "`id`: 'aaaa"),
        ({**GOOD, "id": "a\nb"}, "`id`: 'a\\nb' has characters that can't be printed"),
        ({**GOOD, "prompt_token_ids": [2**31 - 1]}, "`prompt_token_ids`"),
        ({**GOOD, "prompt_token_ids": ["1"]}, "`prompt_token_ids`"),
        ({**GOOD, "prompt_token_ids": [True]}, "`prompt_token_ids`"),
        ({"id": "r1", "output_token_ids": [2]}, "`prompt_token_ids`"),
    ],
)
def test_a_bad_line_is_refused_by_file_line_and_field(tmp_path: Path, line: object, complaint: str) -> None:
    path = write(tmp_path / "a.jsonl", GOOD, GOOD, line)
    with pytest.raises(TraceError) as refusal:
        list(read_trace(path))
    assert str(refusal.value).startswith(f"{path}:3: ")
    assert complaint in str(refusal.value)


def test_a_missing_empty_or_torn_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="empty: holds no request"):
        list(read_trace(write(tmp_path / "empty")))
    with pytest.raises(TraceError, match="blank: holds no request"):
        list(read_trace(write(tmp_path / "blank", "\n", " \n")))
    with pytest.raises(TraceError, match="missing"):
        list(read_trace(tmp_path / "missing.jsonl"))
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(b"x" * 100)[:12] + b"\xff" * 20)
    with pytest.raises(TraceError, match="damaged"):
        list(read_trace(damaged))
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(gzip.compress(json.dumps(GOOD).encode() * 100)[:-12])
    with pytest.raises(TraceError, match="torn"):
        list(read_trace(torn))
