"""Block drafters as sources: with a confidence head, and without."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from draftd.blocks.checkpoint import save_checkpoint
from draftd.blocks.walk import draft
from draftd.sources import REGISTRY, Batch, GuardedSource, Need, SourceError, Why
from draftd.sources.block_model import BlockModel, OneHotBlockModel
from tests.contract.source_promises import Make, SourcePromises, ask, drafts
from tests.engines.blocks.tiny import CONFIG, tiny_drafter

OFFERED = frozenset({Need.TOKENS})
TEXT, OTHER = [3, 7, 0, 30, 21, 1, 2, 9], [6, 6, 5]


@pytest.fixture
def confident(tmp_path: Path) -> Path:
    save_checkpoint(tiny_drafter("gated"), tmp_path / "confident")
    return tmp_path / "confident"


@pytest.fixture
def unsure(tmp_path: Path) -> Path:
    save_checkpoint(tiny_drafter("gated", confidence=False), tmp_path / "unsure")
    return tmp_path / "unsure"


class TestPromises(SourcePromises):
    @pytest.fixture(params=[0.0, 1.0], ids=["greedy", "sampled"])
    def make(self, request: pytest.FixtureRequest, confident: Path) -> Make:
        return partial(REGISTRY.make, "block", {"checkpoint": confident, "temperature": request.param}, OFFERED)


def test_a_row_gets_the_beginning_of_its_block_with_its_survival(confident: Path) -> None:
    source = BlockModel(confident)
    chance = np.zeros((2, CONFIG.block_size), np.float32)
    blocks = draft(source._drafter, [TEXT, OTHER], np.zeros(2, np.float32), chance)
    assert blocks.survival is not None

    proposals = ask(source, [(1, 0, TEXT, 99), (2, 0, [], 3), (3, 0, OTHER, 2)])
    assert proposals.node_end.tolist() == [4, 4, 6]  # a block has four tokens
    assert proposals.tokens.tolist() == [*blocks.tokens[0].tolist(), *blocks.tokens[1, :2].tolist()]
    assert proposals.survival is not None
    expected = np.concatenate([blocks.survival[0], blocks.survival[1, :2]])
    np.testing.assert_allclose(proposals.survival, expected, rtol=1e-5)


def test_without_a_confidence_head_all_rows_have_the_same_budget(unsure: Path) -> None:
    source = OneHotBlockModel(unsure)
    proposals = ask(source, [(1, 0, TEXT, 3), (2, 0, OTHER, 3)])
    assert proposals.node_end.tolist() == [3, 6]
    assert proposals.survival is None
    with pytest.raises(ValueError, match="budgets from 2 to 3: without a confidence head all need the same"):
        ask(source, [(1, len(TEXT), [], 3), (2, len(OTHER), [], 2)])


def test_a_checkpoint_without_a_confidence_head_states_no_survival(unsure: Path, confident: Path) -> None:
    with pytest.raises(SourceError, match="no confidence head: it can be the source block_one_hot alone"):
        REGISTRY.make("block", {"checkpoint": unsure}, OFFERED)
    source = OneHotBlockModel(confident)  # which may have one
    assert drafts(source, [(1, 0, TEXT, 4)]) == drafts(BlockModel(confident), [(1, 0, TEXT, 4)])


def test_what_is_no_block_drafter_is_refused_by_name(model_dir: Path) -> None:
    with pytest.raises(SourceError, match=r"draft source 'block' does not start: .*config.json is of no checkpoint"):
        REGISTRY.make("block", {"checkpoint": model_dir}, OFFERED)


@pytest.mark.parametrize("temperature", [-1.0, float("nan")])
def test_a_temperature_that_is_none_is_refused(confident: Path, temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature is"):
        BlockModel(confident, temperature=temperature)


def test_sampled_drafts_depend_on_seed_request_and_text_alone(confident: Path) -> None:
    rows = [(request, 0, OTHER, 4) for request in range(20)]
    first, again, other = (drafts(BlockModel(confident, temperature=1.0, seed=seed), rows) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({tuple(row) for row in first}) > 10


def test_it_drafts_on_its_own_thread_and_is_closed_there(confident: Path) -> None:
    source = GuardedSource("block", BlockModel(confident))
    one = np.array([1], np.uint64), np.array([0], np.uint32), np.array([len(TEXT)], np.uint32)
    proposals, why = source.ask(Batch(*one, np.array(TEXT, np.int32)), np.array([4], np.uint32), 30.0)
    assert why is Why.ANSWERED
    assert proposals is not None
    assert len(proposals.tokens) == 4
    source.close()
