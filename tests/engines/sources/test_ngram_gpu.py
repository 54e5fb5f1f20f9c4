"""Recorded requests at the source, without a GPU: the twin of the kernels does what they do."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from draftd.kernels.delivery import STAGES, Arrival
from draftd.kernels.texts import Rule
from draftd.sources.ngram_gpu import DeviceNgram
from tests.engines.kernels.oracle import CPU
from tests.engines.sources.decoding import decode

ROOT = Path(__file__).parents[3]
RULE = Rule(2, 6, 5)


def test_a_batch_as_it_is_decoded() -> None:
    drafts, expected = decode(seed=0)
    assert drafts == expected
    assert sum(len(set(row)) > 1 for step in drafts for row in step) > 50  # the others are padding alone


def test_ranks_of_a_group_draft_the_same_whatever_comes_when_at_each(tmp_path: Path) -> None:
    """Each receives windows of its own, at steps of its own: the first rank's count."""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engines.sources.rank", str(rank), f"file://{tmp_path / 'meeting'}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [json.loads(rank.communicate(timeout=200)[0]) for rank in ranks]  # before pytest gives up
    finally:  # one that lost the other would wait for it for ever
        for rank in ranks:
            with rank:  # reaps it
                rank.kill()
    (first, first_expected), (second, second_expected) = said
    assert first == second == first_expected
    assert second_expected != first_expected  # what the second rank would draft from what came to it


def test_a_row_opened_anew_has_no_window_of_the_request_before() -> None:
    source = DeviceNgram(1, 8, RULE, CPU)
    window = [np.array([1, 2, 3], np.int32)]
    before = source.open(0, [1, 2])
    assert source.post([Arrival(0, before, window)])
    assert source.propose()[1].tolist() == [1]
    assert source.post([Arrival(0, before, window)])  # still on its way when the row changes hands
    now = source.open(0, [1, 2])
    assert source.propose()[1].tolist() == [0]
    assert source.post([Arrival(0, now, window)])
    assert source.propose()[1].tolist() == [1]


def test_windows_that_are_taken_away_are_gone_with_the_next_arrival() -> None:
    source = DeviceNgram(1, 8, RULE, CPU)
    opening = source.open(0, [1, 2])
    assert source.post([Arrival(0, opening, [np.array([1, 2, 3], np.int32)])])
    assert source.propose()[1].tolist() == [1]
    assert source.post([Arrival(0, opening, [np.array([7, 2, 4], np.int32)], starts=True)])
    assert source.propose()[1].tolist() == [0]


def test_nothing_is_drafted_for_a_closed_row() -> None:
    source = DeviceNgram(2, 8, RULE, CPU)
    source.open(0, [1, 2, 3, 1, 2])
    source.open(1, [1, 2, 3, 1, 2])
    source.close(0)
    assert source.propose()[1].tolist() == [0, 5]


def test_what_a_step_in_flight_emits_for_a_closed_row_goes_nowhere() -> None:
    source = DeviceNgram(2, 8, RULE, CPU)
    emitted, counts = torch.tensor([[1, 2, 1, 2], [1, 2, 1, 2]]), torch.tensor([4, 4])
    source.open(0, [1, 2])
    source.open(1, [1, 2])
    source.close(0)
    source.append(emitted, counts)
    assert source.propose()[1].tolist() == [0, 5]
    source.open(0, [1, 2])
    source.append(emitted, counts)
    assert source.propose()[1].tolist() == [5, 5]


@pytest.mark.parametrize("row", [-1, 2])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    """-1 would be the last, and tapes have a row 2, nobody's."""
    source = DeviceNgram(2, 8, RULE, CPU)
    with pytest.raises(ValueError, match="from 0 to 1"):
        source.open(row, [1, 2])
    with pytest.raises(ValueError, match="from 0 to 1"):
        source.close(row)
    assert not source.texts.lengths.any()


def test_a_text_without_room_and_windows_without_a_stage_are_refused() -> None:
    source = DeviceNgram(1, 8, RULE, CPU)
    with pytest.raises(ValueError, match="rows have room for 8"):
        source.open(0, range(9))
    assert [source.post([Arrival(0, 1, [])]) for _ in range(STAGES + 1)] == [True] * STAGES + [False]
