"""A batch of recorded requests at the source, without a GPU: its twin of the kernels does what they do."""

import random
from itertools import islice

import numpy as np
import pytest
import torch

from bench.text import trace_documents
from draftd.demo.sample import SAMPLE
from draftd.kernels.delivery import STAGES, Arrival
from draftd.kernels.texts import Rule
from draftd.sources.ngram_gpu import DeviceNgram
from tests.engines.kernels.oracle import CPU, Row, drafted, padding

RULE = Rule(2, 6, 5, pad_with_last=True)
WIDTH = 400


def test_a_batch_as_it_is_decoded() -> None:
    """Rows emit 0 to 6 tokens a step, windows come now and then, a row is closed and opened again for another text."""
    chance = random.Random(0)
    texts = [document[:WIDTH].tolist() for document in islice(trace_documents(SAMPLE), 12)]
    source = DeviceNgram(4, WIDTH, RULE, CPU)
    rows = [Row([]) for _ in range(4)]
    left: list[list[int]] = [[] for _ in rows]
    for step in range(60):
        if step % 15 < 4:
            place, text = step % 15, chance.choice(texts)
            source.open(place, text[:100])
            rows[place], left[place] = Row(text[:100]), text[100:]
        else:
            emitted = [tokens[: chance.randrange(7)] for tokens in left]
            padded = [tokens + [0] * (6 - len(tokens)) for tokens in emitted]
            source.append(torch.tensor(padded), torch.tensor([len(tokens) for tokens in emitted]))
            for row, rest, tokens in zip(rows, left, emitted, strict=True):
                row.text.extend(tokens)
                del rest[: len(tokens)]
        for place in chance.sample(range(4), chance.randrange(3)):
            start = chance.randrange(300)
            window = chance.choice(texts)[start : start + 64]
            assert source.post([Arrival(place, [np.array(window, np.int32)])])
            rows[place].arrivals.append([window])
        tokens, counts = source.propose()
        for row, of_row, count in zip(rows, tokens.tolist(), counts.tolist(), strict=True):
            draft = drafted(row, RULE)
            assert of_row == draft + [padding(row, RULE)] * (5 - len(draft))
            assert count == len(draft)


def test_a_row_opened_anew_has_no_window_of_the_request_before() -> None:
    source = DeviceNgram(1, 8, RULE, CPU)
    window = [np.array([1, 2, 3], np.int32)]
    source.open(0, [1, 2])
    assert source.post([Arrival(0, window)])
    assert source.propose()[1].tolist() == [1]
    assert source.post([Arrival(0, window)])  # still on its way when the row changes hands
    source.open(0, [1, 2])
    assert source.propose()[1].tolist() == [0]


def test_windows_that_are_taken_away_are_gone_with_the_next_arrival() -> None:
    source = DeviceNgram(1, 8, RULE, CPU)
    source.open(0, [1, 2])
    assert source.post([Arrival(0, [np.array([1, 2, 3], np.int32)])])
    source.propose()
    assert source.post([Arrival(0, [np.array([7, 2, 4], np.int32)], starts=True)])
    assert source.propose()[1].tolist() == [0]


def test_nothing_is_drafted_for_a_closed_row() -> None:
    source = DeviceNgram(2, 8, RULE, CPU)
    source.open(0, [1, 2, 3, 1, 2])
    source.open(1, [1, 2, 3, 1, 2])
    source.close(0)
    assert source.propose()[1].tolist() == [0, 5]


def test_a_text_without_room_and_windows_without_a_stage_are_refused() -> None:
    source = DeviceNgram(1, 8, RULE, CPU)
    with pytest.raises(ValueError, match="rows have room for 8"):
        source.open(0, range(9))
    assert [source.post([Arrival(0, [])]) for _ in range(STAGES + 1)] == [True] * STAGES + [False]
