"""A block drafter as a directory: config.json says what it is, model.safetensors has its weights."""

from pathlib import Path

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from draftd.blocks.config import CheckpointError, read_config
from draftd.blocks.drafter import BlockDrafter

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save_checkpoint(drafter: BlockDrafter, directory: Path) -> None:
    """Makes the directory where it is not there. Weights are written as float16, in which they are as good."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(drafter.config)))
    weights = drafter.state_dict()
    halves = {name: weight.half() if weight.is_floating_point() else weight for name, weight in weights.items()}
    save_file(halves, directory / WEIGHTS)


def load_checkpoint(directory: Path) -> BlockDrafter:
    """Ready to draft, in float32 on the processor.

    Raises CheckpointError for a directory whose files are not there, or not of a drafter trained for blocks."""
    drafter = BlockDrafter(read_config(directory / CONFIG))
    file = directory / WEIGHTS
    try:
        drafter.load_state_dict(load_file(file))
    except OSError as error:
        raise CheckpointError(f"{file}: {error.strerror or error}") from error
    except (SafetensorError, RuntimeError) as error:  # torch names every weight that is missing, unknown or misshapen
        raise CheckpointError(f"{file} does not fit {CONFIG} beside it: {error}") from error
    vocabulary = drafter.vocabulary
    ascending = bool((vocabulary[1:] > vocabulary[:-1]).all())
    if not ascending or not 0 <= vocabulary[0] <= vocabulary[-1] < drafter.config.target_vocab_size:
        raise CheckpointError(f"{file}: vocabulary is not of ascending ids from 0 to target_vocab_size in {CONFIG}")
    drafter.eval().requires_grad_(False)
    return drafter
