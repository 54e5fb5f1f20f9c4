"""What a block drafter drafts, against its twin and against what it states."""

from typing import get_args

import numpy as np
import pytest
import torch

from draftd.blocks.config import MarkovHeadType
from draftd.blocks.drafter import BlockDrafter
from draftd.blocks.walk import DraftedBlocks, draft
from tests.engines.blocks.tiny import CONFIG, tiny_drafter
from tests.engines.blocks.twin import Twin

KINDS: tuple[MarkovHeadType, ...] = get_args(MarkovHeadType)
GREEDY, SAMPLED = 0.0, 0.7


def texts(count: int, seed: int = 0) -> list[list[int]]:
    """Shorter and longer than the context, half of their ids not drafted."""
    random = np.random.default_rng(seed)
    return [random.integers(0, CONFIG.target_vocab_size, 1 + number % 9).tolist() for number in range(count)]


def drafted(drafter: BlockDrafter, rows: list[list[int]], temperatures: list[float], seed: int = 0) -> DraftedBlocks:
    chance = np.random.default_rng(seed).random((len(rows), CONFIG.block_size), np.float32)
    return draft(drafter, rows, np.array(temperatures, np.float32), chance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperatures", [[GREEDY] * 3, [SAMPLED] * 3, [GREEDY, SAMPLED, 1.5]], ids=str)
def test_a_batch_is_what_the_twin_drafts_row_by_row(kind: MarkovHeadType, temperatures: list[float]) -> None:
    drafter, rows = tiny_drafter(kind), texts(18)
    temperatures = temperatures * 6
    blocks = drafted(drafter, rows, temperatures)
    chance = np.random.default_rng(0).random((len(rows), CONFIG.block_size), np.float32)
    twin = Twin(drafter)
    assert blocks.survival is not None
    for row, text in enumerate(rows):
        expected = twin.draft(text, temperatures[row], chance[row].tolist())
        assert blocks.tokens[row].tolist() == expected.tokens
        np.testing.assert_allclose(blocks.probabilities[row], expected.probabilities, atol=1e-4)
        np.testing.assert_allclose(blocks.survival[row], expected.survival, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_markov_head_matters(kind: MarkovHeadType) -> None:
    """Or the twin would say nothing of it: without it some block is another."""
    with_head, without = tiny_drafter(kind), tiny_drafter(kind)
    without.markov_head.bias.weight.zero_()
    rows = texts(18)
    temperatures = [GREEDY] * len(rows)
    assert not drafted(with_head, rows, temperatures).tokens.equal(drafted(without, rows, temperatures).tokens)


def test_sampled_drafts_follow_the_distribution_that_is_stated() -> None:
    """Chi-square over the first two tokens, 143 degrees of freedom: above 209 in under 1 of 3,000 cases."""
    drafter, draws = tiny_drafter("recurrent"), 20_000
    blocks = drafted(drafter, [[0, 3, 7]] * draws, [SAMPLED] * draws)
    words = len(drafter.vocabulary)
    counted = np.zeros((words, words))
    expected = np.zeros((words, words))
    own = drafter.own_ids(blocks.tokens).numpy()
    for first, second, stated in zip(own[:, 0], own[:, 1], blocks.probabilities.numpy(), strict=True):
        counted[first, second] += 1
        expected[first] = draws * stated[0, first] * stated[1]  # what is stated for a place is given those before it
    assert ((counted - expected)[expected > 0] ** 2 / expected[expected > 0]).sum() < 209
    assert (counted.max(1) > 0).all()


def test_greedy_rows_of_a_mixed_batch_are_those_of_a_greedy_one() -> None:
    drafter, rows = tiny_drafter(), texts(12)
    mixed = drafted(drafter, rows, [GREEDY, SAMPLED] * 6)
    greedy = drafted(drafter, rows, [GREEDY] * 12, seed=1)  # other chances
    assert mixed.tokens[::2].equal(greedy.tokens[::2])
    assert not mixed.tokens[1::2].equal(greedy.tokens[1::2])


def test_survival_is_a_probability_and_never_rises_along_a_block() -> None:
    survival = drafted(tiny_drafter(), texts(50), [GREEDY, SAMPLED] * 25).survival
    assert survival is not None
    assert ((survival > 0) & (survival <= 1)).all()
    assert (survival[:, 1:] <= survival[:, :-1]).all()
    assert len(survival.unique()) > 50
    assert drafted(tiny_drafter(confidence=False), texts(2), [GREEDY] * 2).survival is None


def test_a_block_sees_nothing_behind_its_anchor() -> None:
    """Neither the text that follows, as in training, nor other blocks, nor the masks behind."""
    drafter = tiny_drafter()
    context = torch.randint(0, CONFIG.draft_vocab_size, (1, 10))
    begin, anchors = torch.tensor([2]), torch.tensor([[4, 7, 4]])
    hidden = drafter(context, begin, anchors)
    torch.testing.assert_close(hidden[0, 0], hidden[0, 2])

    behind = context.clone()
    behind[0, 5:] = (behind[0, 5:] + 1) % CONFIG.draft_vocab_size
    changed = drafter(behind, begin, anchors)
    torch.testing.assert_close(changed[0, 0], hidden[0, 0])
    assert not torch.allclose(changed[0, 1], hidden[0, 1])

    padding = context.clone()
    padding[0, :2] = (padding[0, :2] + 1) % CONFIG.draft_vocab_size
    torch.testing.assert_close(drafter(padding, begin, anchors), hidden)
    torch.testing.assert_close(drafter(context[:, :5], begin, torch.tensor([[4]]))[0, 0], hidden[0, 0])
