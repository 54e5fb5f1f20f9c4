"""The twin of ngram_triton.py in plain torch: what it does, readably, on any device.

It looks at whole rows, `max_n` times: for tests, and for machines without a GPU.
"""

import torch
from torch import Tensor

from draftd.kernels.keys import LENGTH_SHIFT, MOST_TOKENS, OWN_SHIFT, SEPARATOR
from draftd.kernels.texts import DeviceTexts, Drafts, Rule, check_emitted


def append(texts: DeviceTexts, emitted: Tensor, counts: Tensor) -> None:
    """Puts the first `counts[row]` tokens of `emitted[row]` behind each row's text, as far as its width goes. Rows that
    nobody has take none.

    `emitted`: int[rows, most], `counts`: int[rows]. Raises ValueError for those that are transposed or have gaps."""
    check_emitted(emitted, counts)
    width = texts.tokens.shape[1]
    lengths = texts.lengths[: len(counts)]
    counts = torch.where(texts.openings[: len(counts)] != 0, counts, 0)
    offsets = torch.arange(emitted.shape[1], device=emitted.device)
    places = lengths[:, None] + offsets
    row, column = torch.nonzero((offsets < counts[:, None]) & (places < width), as_tuple=True)
    texts.tokens[row, places[row, column]] = emitted[row, column].to(torch.int32)
    lengths.copy_((lengths + counts).clamp(max=width))


def draft(texts: DeviceTexts, rows: Tensor, rule: Rule, drafts: Drafts) -> None:
    """Fills `drafts` for a batch. `rows`: int[batch], the row of `texts` that each is of; -1: nobody's."""
    row = rows.clamp(min=0).long()
    text = texts.tokens[row]
    lengths = torch.where(rows >= 0, texts.lengths[row], 0)
    tape = _oldest_first(texts.tapes[row], texts.arrivals[row])
    drafts.keys.copy_(torch.maximum(_best_own(text, lengths, rule), _best_of_tape(tape, text, lengths, rule)))

    place = drafts.keys & MOST_TOKENS
    end = (place if rule.prefer == "latest" else MOST_TOKENS - place)[:, None]
    is_own = ((drafts.keys >> OWN_SHIFT) & 1).bool()[:, None]
    offsets = torch.arange(rule.most_tokens, device=rows.device)
    repeating = end + offsets % (lengths[:, None] - end).clamp(min=1)  # the own text goes on in the draft itself
    of_own = text.gather(1, repeating.clamp(max=text.shape[1] - 1))
    behind_tape = torch.full((len(tape), rule.most_tokens), SEPARATOR, dtype=tape.dtype, device=tape.device)
    of_tape = torch.cat([tape, behind_tape], 1).gather(1, (end + offsets).clamp(max=tape.shape[1]))
    following = torch.where(is_own, of_own, of_tape)
    is_draft = (drafts.keys > 0)[:, None] & ((following == SEPARATOR).cumsum(1) == 0)
    drafts.tokens.copy_(torch.where(is_draft, following, _padding(text, lengths, rule)[:, None]))
    drafts.counts.copy_(is_draft.sum(1))


def _oldest_first(tapes: Tensor, arrivals: Tensor) -> Tensor:
    """int32[batch, ring * arrival tokens]: as the client joins its windows, with separators for what never came."""
    batch, ring, _ = tapes.shape
    slots = (torch.arange(ring, device=tapes.device) + arrivals[:, None]) % ring
    in_order = tapes[torch.arange(batch, device=tapes.device)[:, None], slots]
    return torch.where((slots < arrivals[:, None])[:, :, None], in_order, SEPARATOR).flatten(1)


def _best_own(text: Tensor, lengths: Tensor, rule: Rule) -> Tensor:
    agreeing = _agreeing(text, text, lengths, rule.max_n)
    is_followed = torch.arange(text.shape[1], device=text.device) < lengths[:, None]
    return _best(agreeing, is_followed, rule, is_own=True)


def _best_of_tape(tape: Tensor, text: Tensor, lengths: Tensor, rule: Rule) -> Tensor:
    agreeing = _agreeing(tape, text, lengths, rule.max_n)
    return _best(agreeing, tape != SEPARATOR, rule, is_own=False)


def _agreeing(source: Tensor, text: Tensor, lengths: Tensor, most: int) -> Tensor:
    """int64[batch, width]: at each position, how many tokens before it are those at the text's end, at most `most`."""
    agreeing = torch.zeros(source.shape, dtype=torch.int64, device=source.device)
    all_agree = torch.ones_like(agreeing, dtype=torch.bool)
    for back in range(1, min(most, source.shape[1]) + 1):
        wanted = text.gather(1, (lengths - back).clamp(min=0)[:, None].long())
        all_agree[:, :back] = False
        all_agree[:, back:] &= (source[:, :-back] == wanted) & (back <= lengths)[:, None]
        agreeing += all_agree
    return agreeing


def _best(agreeing: Tensor, is_followed: Tensor, rule: Rule, *, is_own: bool) -> Tensor:
    """int64[batch]: the largest key."""
    positions = torch.arange(agreeing.shape[1], device=agreeing.device)
    places = positions if rule.prefer == "latest" else MOST_TOKENS - positions
    keys = agreeing << LENGTH_SHIFT | int(is_own) << OWN_SHIFT | places
    return torch.where(is_followed & (agreeing >= rule.min_n), keys, 0).amax(1)


def _padding(text: Tensor, lengths: Tensor, rule: Rule) -> Tensor:
    """int32[batch]."""
    if not rule.pad_with_last:
        return torch.full_like(text[:, 0], -1)
    last = text.gather(1, (lengths - 1).clamp(min=0)[:, None].long())[:, 0]
    return torch.where(lengths > 0, last, 0)
