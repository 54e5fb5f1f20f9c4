"""The recordings that come with draftd: small, permissive, whole requests."""

import re
from pathlib import Path

import numpy as np
import pytest

from draftd.demo.sample import SAMPLE, SAMPLE_CORPUS, trace_files
from draftd.replay.traces import read_trace

SIZE_LIMIT = 2_000_000  # bytes, everything in the folder


def test_the_sample_is_small() -> None:
    assert sum(file.stat().st_size for file in SAMPLE.iterdir()) <= SIZE_LIMIT


def test_every_file_has_its_source_and_licence_on_record() -> None:
    table = re.findall(r"^\| (`.*?) \|", (SAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in table for name in re.findall(r"`(\w+)(?:\.npz)?`", row)}
    assert named == {path.name.split(".")[0] for path in [*trace_files(), SAMPLE_CORPUS]}
    assert not any(name.startswith("chat_") for name in named)


@pytest.mark.parametrize("path", trace_files(), ids=lambda path: path.name)
def test_every_output_ends_with_the_stop_id_and_holds_it_once(path: Path) -> None:
    for request in read_trace(path):
        assert np.flatnonzero(request.output == 2).tolist() == [len(request.output) - 1], request.id


def test_a_folder_without_recordings_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        trace_files(tmp_path)
