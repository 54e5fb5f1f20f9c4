"""Block drafters of a few thousand random weights, for everything that does not depend on what was learned."""

import msgspec
import torch
from torch import nn

from draftd.blocks.config import BlockConfig, MarkovHeadType
from draftd.blocks.drafter import BlockDrafter

WORDS = 12  # drafted
CONFIG = BlockConfig(
    target_vocab_size=40,
    draft_vocab_size=WORDS,
    unknown_token_id=WORDS,
    mask_token_id=WORDS + 1,
    block_size=4,
    context_size=6,
    markov_head_type="vanilla",
    markov_rank=5,
    has_confidence_head=True,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    rope_theta=100.0,
    rms_norm_eps=1e-5,
)


def tiny_drafter(kind: MarkovHeadType = "vanilla", *, confidence: bool = True, seed: int = 0) -> BlockDrafter:
    """Every third id is drafted; each weight has an effect that float32 shows."""
    torch.manual_seed(seed)
    drafter = BlockDrafter(msgspec.structs.replace(CONFIG, markov_head_type=kind, has_confidence_head=confidence))
    drafter.vocabulary.copy_(3 * torch.arange(WORDS))
    for weight in drafter.parameters():
        nn.init.normal_(weight, std=0.4)
    return drafter.eval().requires_grad_(False)
