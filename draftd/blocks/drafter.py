"""The model: a small Llama over the text's end and a block of mask tokens, with a Markov and a confidence head.

All positions of a block come out of one forward pass. A token of the text sees those before it, a mask token the text
and the masks before it, so nothing sees what is to be guessed. Only the text's last tokens are looked at, and nothing
is kept from step to step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaModel

from draftd.blocks.config import BlockConfig
from draftd.blocks.markov_heads import MARKOV_HEADS


class BlockDrafter(nn.Module):
    """`own ids` below are the drafter's: places in `vocabulary`, then the unknown token, then the mask."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("vocabulary", torch.zeros(config.draft_vocab_size, dtype=torch.int64))
        """int64[draft vocabulary], the target's ids, ascending."""
        self.transformer = LlamaModel(
            LlamaConfig(
                vocab_size=config.draft_vocab_size + 2,
                hidden_size=config.hidden_size,
                intermediate_size=config.intermediate_size,
                num_hidden_layers=config.num_hidden_layers,
                num_attention_heads=config.num_attention_heads,
                num_key_value_heads=config.num_key_value_heads,
                rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
                rms_norm_eps=config.rms_norm_eps,
                attn_implementation="sdpa",
            )
        )
        self.markov_head = MARKOV_HEADS[config.markov_head_type](config)
        self.confidence_head = nn.Linear(config.hidden_size + 1, 1) if config.has_confidence_head else None

    def own_ids(self, tokens: Tensor) -> Tensor:
        """int64, own ids of the target's ids in a tensor of any shape."""
        places = torch.searchsorted(self.vocabulary, tokens).clamp(max=self.config.draft_vocab_size - 1)
        return torch.where(self.vocabulary[places] == tokens, places, self.config.unknown_token_id)

    def contexts(self, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """The ends of texts in the target's ids, as `forward` takes them: own ids, int64[rows, context size], each
        text at the end of its row; and the column where it begins, int64[rows]."""
        size = self.config.context_size
        ends = [text[-size:] for text in texts]
        rows = torch.tensor([[0] * (size - len(end)) + list(end) for end in ends], dtype=torch.int64)
        return self.own_ids(rows.view(-1, size)), torch.tensor([size - len(end) for end in ends], dtype=torch.int64)

    def forward(self, context: Tensor, begin: Tensor, anchors: Tensor) -> Tensor:
        """Hidden states of blocks, float32[rows, blocks, block size, hidden size]: of each row, one block behind every
        anchor, which sees the row's text up to the anchor alone. Drafting has one, the last column; training has many.

        `context`: own ids, int64[rows, columns]; `begin`: int64[rows], the column where a row's text begins; `anchors`:
        int64[rows, blocks], columns."""
        rows, columns = context.shape
        size = self.config.block_size
        masks = context.new_full((rows, anchors.shape[1] * size), self.config.mask_token_id)
        position = torch.cat([torch.arange(columns).expand(rows, -1), _places(anchors, size)], 1)
        hidden = self.transformer(
            input_ids=torch.cat([context, masks], 1),
            attention_mask=_sees(columns, begin, anchors, size)[:, None],
            position_ids=position,
            use_cache=False,
        ).last_hidden_state
        return hidden[:, columns:].unflatten(1, (-1, size))

    def logits(self, hidden: Tensor) -> Tensor:
        """float32[..., draft vocabulary], before the Markov head: the output matrix is that of the input."""
        return hidden @ self.transformer.embed_tokens.weight[: self.config.draft_vocab_size].T

    def confidence_logits(self, hidden: Tensor, log_probability: Tensor) -> Tensor:
        """float32[...]: how likely the chosen token is accepted if all before it in the block are.

        `hidden`: float32[..., hidden size]; `log_probability`: float32[...], of the chosen token."""
        assert self.confidence_head is not None
        return self.confidence_head(torch.cat([hidden, log_probability[..., None]], -1)).squeeze(-1)


def _places(anchors: Tensor, size: int) -> Tensor:
    """int64[rows, blocks * size], the positions of the mask tokens: right behind their anchors."""
    return (anchors[:, :, None] + torch.arange(1, size + 1)).flatten(1)


def _sees(columns: int, begin: Tensor, anchors: Tensor, size: int) -> Tensor:
    """bool[rows, n, n], n = columns + blocks * size: may the first see the second? Everything sees itself: a row of
    the softmax without any key is no number."""
    rows, blocks = anchors.shape
    n = columns + blocks * size
    block = torch.cat([torch.full((columns,), -1), torch.arange(blocks).repeat_interleave(size)])  # -1: the text
    column = torch.arange(n)
    last = torch.cat([torch.arange(columns).expand(rows, -1), anchors.repeat_interleave(size, 1)], 1)  # text seen
    is_text = (column < columns) & (column >= begin[:, None])
    text = is_text[:, None, :] & (column <= last[:, :, None])
    own_block = (block[:, None] == block) & (block[:, None] >= 0) & (column <= column[:, None])
    return text | own_block | torch.eye(n, dtype=torch.bool)
