"""The twin of the kernels drafts what the rule says, position by position, and what others draft by the same rule."""

import random
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.text import trace_documents
from draftd.client import tape
from draftd.demo.sample import SAMPLE
from draftd.kernels import ngram_torch, ngram_triton
from draftd.kernels.delivery import STAGES, Arrival, Mailbox
from draftd.kernels.keys import MOST_TOKENS
from draftd.kernels.texts import DeviceTexts, Drafts, Rule
from tests.engines.kernels.oracle import BATCHES, CPU, GARBAGE, Row, drafted, on_device, padding, rules


def assert_as_the_rule_says(rows: list[Row], rule: Rule, width: int) -> None:
    drafts = Drafts.empty(len(rows), rule, CPU)
    for buffer in (drafts.keys, drafts.tokens, drafts.counts):
        buffer.fill_(GARBAGE)
    ngram_torch.draft(on_device(rows, width), torch.arange(len(rows)), rule, drafts)
    for row, tokens, count in zip(rows, drafts.tokens.tolist(), drafts.counts.tolist(), strict=True):
        expected = drafted(row, rule)
        assert count == len(expected)
        assert tokens == expected + [padding(row, rule)] * (rule.most_tokens - count)


@given(rows=BATCHES, rule=rules(), spare=st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_any_batch(rows: list[Row], rule: Rule, spare: int) -> None:
    assert_as_the_rule_says(rows, rule, width=max(1, *(len(row.text) for row in rows)) + spare)


@pytest.mark.parametrize("prefer", ["earliest", "latest"])
def test_recorded_texts(prefer: str) -> None:
    """Each with windows from other requests' texts, in a matrix much wider than most."""
    chance = random.Random(0)
    texts = [document.tolist() for document in islice(trace_documents(SAMPLE), 60)]
    rows = []
    for text in texts:
        end = chance.randrange(2, min(len(text), 600))
        others = [chance.choice(texts) for _ in range(12)]
        cuts = [chance.randrange(max(1, len(other) - 64)) for other in others]
        windows = [other[cut : cut + 64] for other, cut in zip(others, cuts, strict=True)]
        rows.append(Row(text[:end], [windows[:4], windows[4:8], [text[end - 5 : end + 20], *windows[8:]]]))
    assert_as_the_rule_says(rows, Rule(2, 8, 16, prefer, pad_with_last=True), width=4096)


@given(rows=BATCHES, length=st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_the_client_drafts_the_same_from_tapes(rows: list[Row], length: int) -> None:
    """It matches once more where a window ends early: there its draft goes on."""
    rule = Rule(1, tape.LONGEST_MATCH, length)
    drafts = Drafts.empty(len(rows), rule, CPU)
    ngram_torch.draft(on_device(rows, 64), torch.arange(len(rows)), rule, drafts)
    for row, tokens, count in zip(rows, drafts.tokens.tolist(), drafts.counts.tolist(), strict=True):
        ring = tape.Ring()
        for arrival in row.arrivals[-tape.RING :]:
            ring.add([tape.Window(np.array(window, np.int32), None) for window in arrival])
        of_client = tape.drafted(np.array(row.text, np.int32), ring.joined, length).tolist()
        assert tokens[:count] == of_client[:count]
        assert (count == 0) == (not of_client)


@given(rows=BATCHES, rule=rules())
@settings(max_examples=100, deadline=None)
def test_the_v1_runner_of_vllm_finds_the_same_earliest_match(rows: list[Row], rule: Rule) -> None:
    """It looks at the own text alone, and its draft ends where the text does."""
    from vllm.v1.spec_decode.ngram_proposer_gpu import NgramGPUKernel  # warns when imported: collecting would fail

    rule = Rule(rule.min_n, rule.max_n, rule.most_tokens, "earliest")
    texts = on_device([Row(row.text) for row in rows], 64)
    texts.tokens[texts.tokens == GARBAGE] = 0
    drafts = Drafts.empty(len(rows), rule, CPU)
    ngram_torch.draft(texts, torch.arange(len(rows)), rule, drafts)
    of_vllm = NgramGPUKernel._find_first_and_extract_all_n_parallel(
        None, texts.tokens, texts.lengths.long(), rule.min_n, rule.max_n, rule.most_tokens
    )
    for row, tokens, theirs in zip(rows, drafts.tokens.tolist(), of_vllm.tolist(), strict=True):
        draft = [token for token in theirs if token != -1] if len(row.text) >= rule.min_n else []
        assert tokens[: len(draft)] == draft
        assert (tokens[0] == -1) == (not draft)


def test_rows_of_a_batch_are_chosen_by_a_device_index() -> None:
    rows = [Row([1, 2, 3, 1, 2]), Row([7, 8, 7]), Row([])]
    rule = Rule(1, 4, 3)
    drafts = Drafts.empty(4, rule, CPU, torch.int64)
    ngram_torch.draft(on_device(rows, 16), torch.tensor([1, -1, 0, 2]), rule, drafts)
    assert drafts.tokens.tolist() == [[8, 7, 8], [-1, -1, -1], [3, 1, 2], [-1, -1, -1]]
    assert drafts.counts.tolist() == [3, 0, 3, 0]


@given(
    texts=st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4),
    emitted=st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=4, max_size=4),
    counts=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    closed=st.sets(st.integers(0, 3)),
)
def test_texts_of_open_rows_grow_by_what_was_emitted_up_to_their_width(
    texts: list[list[int]], emitted: list[list[int]], counts: list[int], closed: set[int]
) -> None:
    on_cpu = on_device([Row(text) for text in texts], 12)
    for place in closed & set(range(len(texts))):
        on_cpu.openings[place] = 0
    ngram_torch.append(on_cpu, torch.tensor(emitted[: len(texts)]), torch.tensor(counts[: len(texts)]))
    for place, text in enumerate(texts):
        grown = text if place in closed else (text + emitted[place][: counts[place]])[:12]
        assert on_cpu.tokens[place, : on_cpu.lengths[place]].tolist() == grown
        assert (on_cpu.tokens[place, len(grown) :] == GARBAGE).all()


def test_what_was_emitted_is_refused_unless_rows_and_counts_lie_together() -> None:
    """The kernel would read other tokens than are meant."""
    texts = on_device([Row([]), Row([])], 8)
    emitted, counts = torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 2])
    for append in (ngram_torch.append, ngram_triton.append):  # it refuses before it launches anything
        for strange in ((emitted.T, counts), (emitted, torch.stack([counts, counts], 1)[:, 0])):
            with pytest.raises(ValueError, match="strides"):
                append(texts, *strange)
    assert texts.lengths[:2].tolist() == [0, 0]
    ngram_torch.append(texts, torch.stack([emitted, emitted], 1)[:, 0], counts)  # rows may be apart
    ngram_torch.append(texts, torch.tensor([[5, 6]]).T, torch.tensor([1, 1]))  # so may be single tokens
    assert texts.tokens[:2, :3].tolist() == [[1, 2, 5], [3, 4, 6]]


def test_what_has_no_room_in_an_arrival_is_missing_at_its_front() -> None:
    windows = [[5, 6, 40], [9] * 300, [5, 6, 41], [9] * 17]
    rule = Rule(2, 2, 1)
    drafts = Drafts.empty(1, rule, CPU)
    ngram_torch.draft(on_device([Row([5, 6], [windows[:1], windows])], 8), torch.tensor([0]), rule, drafts)
    assert drafts.tokens.tolist() == [[41]]
    ngram_torch.draft(on_device([Row([5, 6], [[*windows[:2], windows[3]]])], 8), torch.tensor([0]), rule, drafts)
    assert drafts.counts.tolist() == [0]


def test_what_cannot_be_meant_is_refused() -> None:
    for min_n, max_n, most_tokens in ((0, 3, 1), (3, 2, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="it has to be"):
            Rule(min_n, max_n, most_tokens)
    with pytest.raises(ValueError, match="fit into a key"):
        DeviceTexts.empty(1, MOST_TOKENS + 1, CPU)
    for places in ([0, 0], [2], [-1]):
        with pytest.raises(ValueError, match="each once"):
            Mailbox(2, CPU).post([Arrival(place, 0, []) for place in places])


def test_deliveries_wait_in_order_and_the_host_never_for_them() -> None:
    mailbox = Mailbox(2, CPU)
    for opening in range(STAGES):
        assert mailbox.post([Arrival(opening % 2, opening, [], starts=opening == 1)])
    assert not mailbox.post([Arrival(0, 9, [])])
    for opening in range(STAGES):
        with mailbox.taken() as delivery:
            assert delivery is not None
            assert delivery[0, :3].tolist() == [opening % 2, opening, opening == 1]
            assert (delivery[1] == -1).all()
    with mailbox.taken() as delivery:
        assert delivery is None
    assert mailbox.post([Arrival(0, 0, [])])


@pytest.mark.parametrize(
    ("windows", "opening"),
    [([np.zeros((2, 2), np.int32)], 1), ([np.zeros(2, np.int32)], 2**31), (["text"], 1)],
    ids=["two dimensions", "opening beyond int32", "no array"],
)
def test_a_post_that_cannot_be_written_takes_no_stage(windows: list[Any], opening: int) -> None:
    mailbox = Mailbox(1, CPU)
    for _ in range(STAGES):
        with pytest.raises((ValueError, OverflowError)):
            mailbox.post([Arrival(0, opening, windows)])
    with mailbox.taken() as delivery:
        assert delivery is None
    for number in range(STAGES):
        assert mailbox.post([Arrival(0, number, [])])


def test_a_step_that_fails_gives_its_stage_back() -> None:
    mailbox = Mailbox(1, CPU)
    for number in range(STAGES + 1):
        assert mailbox.post([Arrival(0, number, [])])
        with pytest.raises(RuntimeError, match="of the step"), mailbox.taken():
            raise RuntimeError("of the step")
