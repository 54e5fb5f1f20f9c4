"""What a directory has to hold to be a block drafter, and what is said of one that is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from draftd.blocks.checkpoint import CONFIG, WEIGHTS, load_checkpoint, save_checkpoint
from draftd.blocks.config import CheckpointError
from tests.engines.blocks.tiny import tiny_drafter


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_checkpoint(tiny_drafter("gated"), tmp_path)
    return tmp_path


def rewrite(checkpoint: Path, **fields: Any) -> None:
    """None: the field goes."""
    config = json.loads((checkpoint / CONFIG).read_text()) | fields
    (checkpoint / CONFIG).write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def refusal(checkpoint: Path) -> str:
    with pytest.raises(CheckpointError) as refused:
        load_checkpoint(checkpoint)
    return str(refused.value)


def test_what_was_saved_is_loaded_as_float16_has_it(checkpoint: Path) -> None:
    saved, loaded = tiny_drafter("gated"), load_checkpoint(checkpoint)
    assert loaded.config == saved.config
    assert loaded.state_dict().keys() == saved.state_dict().keys()
    for name, weight in loaded.state_dict().items():
        original = saved.state_dict()[name]
        assert weight.equal(original.half().float() if original.is_floating_point() else original), name


def test_the_target_model_itself_was_not_trained_for_it(model_dir: Path) -> None:
    message = refusal(model_dir)
    assert message.startswith(f"{model_dir / CONFIG} is of no checkpoint that was trained to draft blocks: ")
    assert "'llama'" in message
    assert "$.model_type" in message


def test_a_directory_without_the_files_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    assert str(tmp_path / "nothing" / CONFIG) in refusal(tmp_path / "nothing")
    (checkpoint / WEIGHTS).unlink()
    assert str(checkpoint / WEIGHTS) in refusal(checkpoint)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"mask_token_id": None}, "`mask_token_id`"),
        ({"mask_token_id": 5}, "mask_token_id is not draft_vocab_size + 1"),
        ({"unknown_token_id": 5}, "unknown_token_id is not draft_vocab_size"),
        ({"block_size": 0}, "$.block_size"),
        ({"markov_head_type": "rnn"}, "$.markov_head_type"),
        ({"has_confidence_head": "yes"}, "$.has_confidence_head"),
        ({"block_length": 7}, "`block_length`"),
        ({"draft_vocab_size": 50}, "draft_vocab_size is above target_vocab_size"),
        ({"num_attention_heads": 3}, "hidden_size has no even share"),
        ({"num_key_value_heads": 3}, "num_key_value_heads does not divide"),
        ({"model_type": "dflash"}, "$.model_type"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_field_that_is_wrong_is_named(checkpoint: Path, fields: dict[str, Any], named: str) -> None:
    rewrite(checkpoint, **fields)
    message = refusal(checkpoint)
    assert str(checkpoint / CONFIG) in message
    assert named in message


def test_weights_that_the_config_does_not_describe_are_refused(checkpoint: Path) -> None:
    rewrite(checkpoint, has_confidence_head=False)
    assert "confidence_head.weight" in refusal(checkpoint)
    rewrite(checkpoint, has_confidence_head=True, markov_head_type="recurrent")
    assert "markov_head.cell.weight_ih" in refusal(checkpoint)
    rewrite(checkpoint, markov_head_type="gated", markov_rank=6)
    assert "size mismatch for markov_head.previous.weight" in refusal(checkpoint)


def test_a_vocabulary_that_can_not_be_meant_is_refused(checkpoint: Path) -> None:
    weights = load_file(checkpoint / WEIGHTS)
    for vocabulary in (weights["vocabulary"].flip(0), weights["vocabulary"] - 1, weights["vocabulary"] * 4):
        save_file(weights | {"vocabulary": vocabulary.contiguous()}, checkpoint / WEIGHTS)
        assert "vocabulary is not of ascending ids" in refusal(checkpoint)


def test_a_file_that_is_cut_off_is_refused(checkpoint: Path) -> None:
    content = (checkpoint / WEIGHTS).read_bytes()
    (checkpoint / WEIGHTS).write_bytes(content[:-100])
    assert str(checkpoint / WEIGHTS) in refusal(checkpoint)
