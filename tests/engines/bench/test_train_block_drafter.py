"""A block drafter trained in the small: from the model's own answers to a checkpoint that drafts.

What minutes of training are worth is in docs/block-drafting.md.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from rich.progress import Progress
from safetensors import safe_open
from torch import Tensor

from bench.block_training import learn_confidence, learn_tokens, lessons_from, untrained_drafter
from bench.train_block_drafter import main, parts, replayed, trained_drafter
from draftd.blocks.checkpoint import WEIGHTS, load_checkpoint, save_checkpoint
from draftd.blocks.config import MarkovHeadType
from draftd.blocks.drafter import BlockDrafter
from draftd.replay.traces import RecordedRequest, read_trace
from draftd.sources.block_model import BlockModel, OneHotBlockModel

QUESTIONS, TOKENS, STEPS = 12, 32, 30
OUTPUTS = "outputs.jsonl.gz"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    main(["--out", str(folder), "--questions", str(QUESTIONS), "--tokens", str(TOKENS), "--steps", str(STEPS)])
    return folder


@pytest.fixture(scope="module")
def recorded(checkpoint: Path) -> Sequence[RecordedRequest]:
    return list(read_trace(checkpoint / OUTPUTS))


@pytest.fixture(scope="module")
def embeddings(model_dir: Path) -> Tensor:
    with safe_open(model_dir / "model.safetensors", "pt") as weights:
        embedding: Tensor = weights.get_tensor("model.embed_tokens.weight")
    return embedding


def untrained(
    embeddings: Tensor, recorded: Sequence[RecordedRequest], markov_head: MarkovHeadType = "vanilla"
) -> BlockDrafter:
    torch.manual_seed(0)
    return untrained_drafter(embeddings, parts(recorded)[0], markov_head, confidence=True)


def test_answers_are_recorded_and_no_part_has_those_of_another(recorded: Sequence[RecordedRequest]) -> None:
    lessons, others, held_out = parts(recorded)
    assert len(recorded) == len(lessons) + len(others) + len(held_out) == QUESTIONS
    assert {len(part) for part in (others, held_out)} == {1}
    assert len({it.id for part in (lessons, others, held_out) for it in part}) == QUESTIONS


def test_what_was_trained_is_accepted_more_than_what_was_not(
    checkpoint: Path, embeddings: Tensor, recorded: Sequence[RecordedRequest], tmp_path: Path
) -> None:
    save_checkpoint(untrained(embeddings, recorded), tmp_path)
    _, others, held_out = parts(recorded)
    new = [*others, *held_out]
    trained, before = (replayed("block", BlockModel(folder), new) for folder in (checkpoint, tmp_path))
    assert before.accepted < trained.accepted
    assert trained.accepted / trained.steps > 0.1


@pytest.mark.parametrize("markov_head", get_args(MarkovHeadType))
def test_each_markov_head_learns(
    markov_head: MarkovHeadType, embeddings: Tensor, recorded: Sequence[RecordedRequest]
) -> None:
    drafter = untrained(embeddings, recorded, markov_head)
    losses = list(learn_tokens(drafter, lessons_from(drafter, recorded, np.random.default_rng(0)), 12))
    assert np.mean(losses[-3:]) < np.mean(losses[:3]) - 0.5
    assert drafter.markov_head.bias.weight.abs().max() > 0  # it began without effect


def test_the_confidence_head_learns_how_often_drafts_are_right_and_changes_nothing_else(
    checkpoint: Path, recorded: Sequence[RecordedRequest]
) -> None:
    drafter = load_checkpoint(checkpoint)
    before = {name: weight.clone() for name, weight in drafter.state_dict().items()}
    assert drafter.confidence_head is not None
    drafter.confidence_head.requires_grad_(True)
    torch.nn.init.zeros_(drafter.confidence_head.bias)
    lessons = parts(recorded)[0]
    learn_confidence(drafter, lessons_from(drafter, lessons, np.random.default_rng(0)), 4)
    changed = {name for name, weight in drafter.state_dict().items() if not weight.equal(before[name])}
    assert changed == {"confidence_head.weight", "confidence_head.bias"}
    save_checkpoint(drafter, checkpoint / "refitted")
    assert replayed("block", BlockModel(checkpoint / "refitted"), lessons).calibration.error < 0.1


def test_the_same_answers_and_seed_give_the_same_drafter_and_another_seed_another(
    embeddings: Tensor, recorded: Sequence[RecordedRequest], tmp_path: Path
) -> None:
    lessons, others, held_out = parts(recorded)

    def weights(seed: int) -> bytes:
        options = Namespace(seed=seed, steps=2, markov_head="gated", confidence_head=False)
        drafter = trained_drafter(embeddings, lessons, others, options, Progress(disable=True))
        save_checkpoint(drafter, tmp_path)
        return (tmp_path / WEIGHTS).read_bytes()

    assert weights(1) == weights(1) != weights(2)
    assert replayed("block", OneHotBlockModel(tmp_path), held_out).steps > 0  # without a confidence head


def test_too_few_questions_for_three_parts_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "--questions", "9"])
    assert "--questions 9: give at least 10" in capsys.readouterr().err
