"""What a block drafter's config.json says, and when it says too little, too much or something else."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

MODEL_TYPE = "draftd_block"

Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
MarkovHeadType = Literal["vanilla", "gated", "recurrent"]


class CheckpointError(ValueError):
    """No checkpoint of a block drafter. The message names the file, and the field or the weights."""


class BlockConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="model_type", tag=MODEL_TYPE):
    """Where Hugging Face's Llama has a field, name and meaning are its. Raises ValueError, which names the field."""

    target_vocab_size: Count
    """Of the model that is drafted for: its ids are below that."""
    draft_vocab_size: Count
    """How many of them are drafted. The drafter's own ids are their places in ascending order."""
    unknown_token_id: Count
    """The drafter's own id for all other tokens of a text: draft_vocab_size."""
    mask_token_id: Count
    """The drafter's own id that stands where a token is to be drafted: draft_vocab_size + 1."""
    context_size: Count
    """Tokens at the end of the text that are looked at."""
    markov_head_type: MarkovHeadType
    markov_rank: Count
    has_confidence_head: bool
    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    num_key_value_heads: Count
    rope_theta: Positive
    rms_norm_eps: Positive
    block_size: Count = 7
    """Tokens drafted by a forward pass."""

    def __post_init__(self) -> None:
        faults = {
            "draft_vocab_size is above target_vocab_size": self.draft_vocab_size > self.target_vocab_size,
            "unknown_token_id is not draft_vocab_size": self.unknown_token_id != self.draft_vocab_size,
            "mask_token_id is not draft_vocab_size + 1": self.mask_token_id != self.draft_vocab_size + 1,
            "hidden_size has no even share for each of num_attention_heads": self.hidden_size
            % (2 * self.num_attention_heads),
            "num_key_value_heads does not divide num_attention_heads": self.num_attention_heads
            % self.num_key_value_heads,
        }
        if wrong := [fault for fault, there in faults.items() if there]:
            raise ValueError("; ".join(wrong))


class _Kind(msgspec.Struct):
    model_type: Literal["draftd_block"]


def read_config(file: Path) -> BlockConfig:
    """Raises CheckpointError for a file that is not there, and for what was not trained to draft blocks."""
    try:
        content = file.read_bytes()
        msgspec.json.decode(content, type=_Kind)  # before anything else of a file that is of another kind is named
        return msgspec.json.decode(content, type=BlockConfig)
    except OSError as error:
        raise CheckpointError(f"{file}: {error.strerror}; give the directory of a block drafter") from error
    except msgspec.MsgspecError as error:
        raise CheckpointError(f"{file} is of no checkpoint that was trained to draft blocks: {error}") from error
